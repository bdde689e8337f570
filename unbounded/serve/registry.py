"""All memories of one folder: made, found, opened when needed, closed when not, deleted."""

import asyncio
import os
import shutil
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, final

import unbounded.memory
from unbounded.errors import EngineError, StoreError
from unbounded.lm import Pretrained
from unbounded.memory import Budget, Memory, checked_name
from unbounded.memory.opening import is_name
from unbounded.presets import set_threads
from unbounded.serve.limits import Limits, Refused, too_slow
from unbounded.serve.observing import Observer
from unbounded.serve.session import Pool, Session
from unbounded.store.disk import Lock, RealDisk, sync_folder
from unbounded.store.layout import NAME, read_about

T = TypeVar("T")

DELETED = ".deleted-"
"""How the name of a folder begins that is being deleted."""


@final
class Registry:
    """One model, its memories, and the threads that work on them.

    A name is looked up among those that are there: no path is made of what a request says, but for
    a new memory whose name was checked.
    """

    def __init__(
        self,
        root: Path,
        model: Pretrained,
        limits: Limits,
        observer: Observer,
        *,
        threads: int,
        engine: str | None = None,
    ) -> None:
        self.root = root
        self._engine = engine
        self.model = model
        self.limits = limits
        self.observer = observer
        self.pool = Pool(threads)
        self.ready = False
        """Whether requests are taken: from the start until it is told to stop."""
        self._open: dict[str, Session] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._making = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Finish deletions that were interrupted; from now on it is ready."""
        # Threads are for requests: one request uses one. With two each, and no core to spare, all
        # would wait for each other.
        set_threads(1)
        for line in finish_deletions(self.root):
            self._log("", line)
        self.ready = True

    async def stop(self) -> None:
        """Let what is under way end at its next block, close all memories, end the threads."""
        self.ready = False
        for session in self._open.values():
            session.stopping = True
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        for session in list(self._open.values()):
            await self._close(session)
        self.pool.close()

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Work that goes on even if whoever asked for it leaves."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def names(self) -> list[str]:
        """The memories that there are."""
        paths = [path for path in self.root.iterdir() if is_name(path.name)]
        return sorted(path.name for path in paths if (path / NAME).is_file())

    def of_other_models(self) -> list[str]:
        """Those that belong to another model than this."""
        return [name for name in self.names() if self._foreign(name)]

    def opened(self) -> dict[str, Session]:
        """Those that are open now."""
        return dict(self._open)

    async def make(self, name: str, budget: Budget | None) -> None:
        """Make a memory that has read nothing."""
        checked_name(name)  # once more where a path is made of it
        async with self._making:
            there = self.names()
            if name in there:
                raise Refused(409, "exists", "there is a memory of that name already")
            if len(there) >= self.limits.memories:
                raise Refused(
                    409, "full", f"there are {len(there)} memories, the most; delete one first"
                )
            async with self._opening[name]:
                await self._open_session(name, budget)

    @asynccontextmanager
    async def session(self, name: str) -> AsyncIterator[Session]:
        """The memory of that name, opened, and kept open meanwhile."""
        self.check_there(name)
        async with self._opening[name]:
            session = self._open.get(name)
            if session is not None and session.broken and not session.users:
                await self._close(session)
                session = None
            if session is None:
                self.check_there(name)
                session = await self._open_session(name, None)
            session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            session.used = time.monotonic()

    async def ask(self, name: str, work: Callable[[Memory], T]) -> T:
        """What a thread finds when it asks the memory of that name, if it is there in time."""
        try:
            async with asyncio.timeout(self.limits.seconds), self.session(name) as session:
                return await session.ask(work)
        except TimeoutError:
            raise too_slow(self.limits.seconds) from None

    async def delete(self, name: str) -> None:
        """Take a memory away, files and all, once all who came before are served.

        What could not be taken away whole is out of sight, and goes at the next start.
        """
        self.check_there(name)
        async with self._opening[name]:
            self.check_there(name)
            session = self._open.get(name)
            if session is not None:
                await self._close(session)
            await self.pool.run(lambda: delete_folder(self.root, name))

    async def _open_session(self, name: str, budget: Budget | None) -> Session:
        if self._foreign(name):
            raise Refused(
                409,
                "other_model",
                "that memory belongs to another model than this service has; serve it with that "
                "one: unbounded serve --model",
            )
        await self._close_least_used()
        try:
            memory = await self.pool.run(
                lambda: unbounded.memory.open(
                    *(self.root / name, self.model),
                    budget=budget,
                    engine=self._engine if self._on_shards(name) else None,
                    say=lambda line: self._log(name, line),
                )
            )
        except (StoreError, EngineError) as error:
            self._log(name, str(error))
            raise
        for event in memory.events:
            self._log(name, event)
        session = self._open[name] = Session(name, memory, self.pool, self.limits)
        return session

    async def _close_least_used(self) -> None:
        """Have a place for one more."""
        for session in sorted(self._open.values(), key=lambda session: session.used):
            if len(self._open) < self.limits.open:
                break
            if not session.users and not self._opening[session.name].locked():
                async with self._opening[session.name]:
                    await self._close(session)

    async def _close(self, session: Session) -> None:
        if self._open.get(session.name) is session:
            del self._open[session.name]
        try:
            await session.close()
        except (StoreError, EngineError, OSError) as error:
            self._log(session.name, str(error))

    def _foreign(self, name: str) -> bool:
        """Whether it says of itself that it belongs to another model."""
        try:
            about = read_about(self.root / name)
        except StoreError:
            return False  # New, or damaged: to open it says more.
        return bool(about["model"]["fingerprint"] != self.model.fingerprint)

    def _on_shards(self, name: str) -> bool:
        """Whether its keys lie on shards; those of a new one do where there is an engine."""
        folder = self.root / name
        return not (folder / NAME).exists() or read_about(folder).get("shards") is not None

    def _log(self, name: str, line: str) -> None:
        self.observer.log("memory", memory=name, said=line)

    def check_there(self, name: str) -> None:
        """Refuse a name of nothing: no lock is kept for it."""
        if name not in self._open and name not in self.names():
            raise Refused(404, "no_memory", "there is no memory of that name")


def delete_folder(root: Path, name: str) -> None:
    """Take a memory out of sight in one step, then away; none of its words is on disk after.

    Links are refused: to take a link away would leave the words, and to follow it would be to
    delete in a folder that nobody gave us.
    """
    folder = root / name
    if folder.is_symlink() or any(path.is_symlink() for path in folder.rglob("*")):
        raise Refused(
            409, "is_link", "that memory is, or has in it, a link to elsewhere; delete it there"
        )
    disk = RealDisk()
    with Lock(disk, folder):
        hidden = root / f"{DELETED}{name}-{time.time_ns()}"
        os.rename(folder, hidden)
        sync_folder(disk, root)
        _remove(hidden)
        sync_folder(disk, root)


def finish_deletions(root: Path) -> list[str]:
    """Take away what was being deleted when the service ended; what of that could not be done."""
    failed = []
    for path in root.glob(f"{DELETED}*"):
        try:
            _remove(path)
        except StoreError as error:
            failed.append(str(error))
    return failed


def _remove(path: Path) -> None:
    try:
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    except OSError as error:
        raise StoreError(
            f"{path} could not be taken away whole ({error.strerror}); the next start tries again"
        ) from error
