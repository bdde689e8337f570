"""All memories of one folder: made, found, opened when needed, closed when not."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import final

import unbounded.memory
from unbounded.errors import SettingError, StoreError
from unbounded.lm import Pretrained
from unbounded.memory import Budget, Memory
from unbounded.serve import deletion
from unbounded.serve.batching import Batching
from unbounded.serve.limits import Limits
from unbounded.serve.refusals import Refused
from unbounded.serve.session import Session
from unbounded.serve.watching import on_shards
from unbounded.serve.workers import Workers
from unbounded.store.layout import NAME


@final
class Registry:
    """One model and its memories. A name is looked up among those that are there: no path is made
    of what a request says, but for a new memory whose name was checked."""

    def __init__(
        self,
        root: Path,
        model: Pretrained,
        workers: Workers,
        limits: Limits,
        *,
        batching: Batching | None = None,
        say: Callable[[str, str], None] = lambda name, event: None,
    ) -> None:
        self.root = root
        self.model = model
        self.workers = workers
        self.limits = limits
        self._batching = batching
        self._say = say
        self._open: dict[str, Session] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._making = asyncio.Lock()
        for line in deletion.finish(root):
            say("", line)

    def names(self) -> list[str]:
        """The memories that there are."""
        found: list[str] = []
        for path in self.root.iterdir():
            try:
                name = checked_name(path.name)
            except Refused:
                continue
            if (path / NAME).is_file():
                found.append(name)
        return sorted(found)

    def opened(self) -> dict[str, Session]:
        """Those that are open now."""
        return dict(self._open)

    async def make(self, name: str, budget: Budget | None) -> None:
        """Make a memory that has read nothing."""
        checked_name(name)
        async with self._making:
            there = self.names()
            self._check_here(name)
            if name in there:
                raise Refused(409, "exists", "there is a memory of that name already")
            if len(there) >= self.limits.memories:
                raise Refused(
                    409, "full", f"there are {len(there)} memories, the most; delete one first"
                )
            async with self._opening[name]:
                await self._enter(name, budget)

    @asynccontextmanager
    async def session(self, name: str) -> AsyncIterator[Session]:
        """The memory of that name, opened, and kept open meanwhile."""
        self._check_there(name)
        async with self._opening[name]:
            session = self._open.get(name)
            if session is not None and session.broken and not session.users:
                await self._leave(session)
                session = None
            if session is None:
                self._check_there(name)
                session = await self._enter(name, None)
            session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            session.used = time.monotonic()

    async def delete(self, name: str) -> None:
        """Take a memory away, files and all, once all who came before are served.

        What could not be taken away whole is out of sight, and goes at the next start.
        """
        self._check_there(name)
        async with self._opening[name]:
            self._check_there(name)
            session = self._open.get(name)
            if session is not None:
                await self._leave(session)
            await self.workers.run(lambda: deletion.delete(self.root, name))

    async def close(self) -> None:
        """Close them all; what was acknowledged was on disk before."""
        for session in list(self._open.values()):
            await self._leave(session)

    def stop_reading(self) -> None:
        """Let reads that are under way end at their next block."""
        for session in self._open.values():
            session.stopping = True

    async def _enter(self, name: str, budget: Budget | None) -> Session:
        await self._make_room()
        try:
            memory = await self.workers.run(lambda: self._opened(name, budget))
        except StoreError as error:
            self._say(name, str(error))
            raise
        for event in memory.events:
            self._say(name, event)
        session = Session(name, memory, self.workers, self.limits, self._batching)
        self._open[name] = session
        return session

    def _opened(self, name: str, budget: Budget | None) -> Memory:
        return unbounded.memory.open(self.root / name, self.model, budget=budget)

    def _check_there(self, name: str) -> None:
        """Refuse a name that is none, or of nothing: no lock is kept for it."""
        if checked_name(name) not in self._open and name not in self.names():
            self._check_here(name)
            raise Refused(404, "no_memory", "there is no memory of that name")

    def _check_here(self, name: str) -> None:
        """Refuse a memory on shards by saying what it is."""
        if self.root / name in on_shards(self.root):
            raise Refused(
                409,
                "on_shards",
                "that memory is on shards: the service shows how they are and neither reads into "
                "it nor asks it; use 'unbounded read' and 'predict' with --engine",
            )

    async def _make_room(self) -> None:
        for session in sorted(self._open.values(), key=lambda session: session.used):
            if len(self._open) < self.limits.open:
                break
            if not session.users and not self._opening[session.name].locked():
                async with self._opening[session.name]:
                    await self._leave(session)

    async def _leave(self, session: Session) -> None:
        if self._open.get(session.name) is session:
            del self._open[session.name]
        try:
            await session.close()
        except (StoreError, OSError) as error:
            self._say(session.name, str(error))


def checked_name(name: str) -> str:
    """The name, if it is one; whatever else it is never reaches the disk.

    >>> checked_name("my-notes.2026")
    'my-notes.2026'
    """
    try:
        return unbounded.memory.checked_name(name)
    except SettingError as error:
        # Not the error's own words: they say the name again, and a request's text goes nowhere.
        raise Refused(
            422,
            "bad_name",
            "that is no name for a memory; use up to 64 letters, digits, - and _, "
            "and single dots between them",
        ) from error
