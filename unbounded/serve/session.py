"""One memory among many users: what is read is read in order, and asking comes in between."""

import asyncio
import time as clock
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import TypeVar, final

from unbounded.corpus import Line
from unbounded.errors import UnboundedError
from unbounded.memory import Memory
from unbounded.model import Reading
from unbounded.serve.batching import Batching
from unbounded.serve.limits import Limits
from unbounded.serve.refusals import Refused, busy, stopping
from unbounded.serve.workers import PATIENCE, Workers

T = TypeVar("T")


@final
class Session:
    """An open memory and who waits for it.

    Writers go one at a time, first come first served, and hold the state for one block at a time.
    Whoever asks holds the state too, so it sees the memory as it stands between two blocks. Locks
    are fair: asking waits for one block at most, and reading for those who asked before.
    """

    def __init__(
        self,
        name: str,
        memory: Memory,
        workers: Workers,
        limits: Limits,
        batching: Batching | None = None,
    ) -> None:
        self.name = name
        self.memory = memory
        self.batching = batching
        self.users = 0
        self.used = clock.monotonic()
        self.gone = False
        self.broken = False
        self.stopping = False
        self._workers = workers
        self._limits = limits
        self._writing = asyncio.Lock()
        self._state = asyncio.Lock()
        self._aside: Memory | None = None
        self._asking_aside = asyncio.Lock()
        self._waiting = 0

    @contextmanager
    def _queued(self) -> Iterator[None]:
        if self._waiting >= self._limits.waiting:
            raise busy()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Memory]:
        """The memory as it stands between two blocks, for as long as one likes; for asking.

        While it forgets, which is reading again, it is asked as it was before.
        """
        with self._queued():
            while True:
                aside = self._aside
                async with self._state if aside is None else self._asking_aside:
                    # Who had to wait may have waited for the wrong one.
                    if self._aside is aside:
                        self._check()
                        yield aside or self.memory
                        return

    async def ask(self, work: Callable[[Memory], T]) -> T:
        """Let a thread ask the memory."""
        async with self.held() as memory:
            return await self._workers.run(lambda: work(memory))

    async def follow(
        self, lines: Iterator[Line], time: datetime | None = None
    ) -> AsyncIterator[Reading]:
        """Read lines block by block; all durable once this ends.

        When the service stops, it ends with an error; the blocks that were given out are durable.
        """
        with self._queued():
            await self._writing.acquire()
        try:
            readings = iter(self.memory.follow(lines, time=time, whole=True))
            try:
                while True:
                    async with self._state:
                        self._check()
                        reading = await self._run(lambda: next(readings, None))
                    if reading is None:
                        return
                    yield reading
                    if self.stopping:
                        raise stopping()
            finally:
                async with self._state:
                    await self._run(readings.close)  # type: ignore[attr-defined]
        finally:
            self._writing.release()

    async def forget(self, work: Callable[[Memory], T]) -> T:
        """Let a thread make the memory forget, in one go; meanwhile it is asked as it was."""
        with self._queued():
            await self._writing.acquire()
        try:
            async with self._state:
                self._check()
                self._aside = await self._workers.run(self.memory.view)
            try:
                return await self._run(lambda: work(self.memory))
            finally:
                async with self._asking_aside, self._state:
                    aside, self._aside = self._aside, None
                    await self._workers.run(aside.close)
        finally:
            self._writing.release()

    async def close(self) -> None:
        """Wait for all who came before, then close the memory; who comes later is refused."""
        async with self._writing, self._state:
            if not self.gone:
                self.gone = True
                await self._workers.run(self.memory.close)

    async def _run(self, work: Callable[[], T]) -> T:
        """Something that changes the memory; if that fails half-way, it must be opened again."""
        try:
            return await self._workers.run(work, patience=PATIENCE)
        except (OSError, UnboundedError, MemoryError):
            self.broken = True
            raise

    def _check(self) -> None:
        if self.gone:
            raise Refused(404, "no_memory", "there is no memory of that name any more")
