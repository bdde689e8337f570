"""One open memory among many users: reading in order, asking in between; the threads for both."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from queue import PriorityQueue
from typing import Any, TypeVar, final

from unbounded.corpus import Line
from unbounded.errors import UnboundedError
from unbounded.memory import Memory
from unbounded.model import Reading
from unbounded.serve.limits import Limits, Refused, busy, stopping

T = TypeVar("T")

READING_DELAY = 0.25
"""Seconds that reading waits for those who only ask; so neither can starve the other."""


@final
class Pool:
    """A few threads, and their work ordered by when each piece of it should begin."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._threads = ThreadPoolExecutor(threads, "pool")
        self._queue: PriorityQueue[tuple[float, int, Callable[[], Any], Future[Any]]]
        self._queue = PriorityQueue()
        self._numbers = count()

    def __len__(self) -> int:
        """Pieces of work that wait."""
        return self._queue.qsize()

    async def run(self, work: Callable[[], T], *, delay: float = 0.0) -> T:
        """Have it done by a thread; with a delay, after those who came a little later.

        Who is cancelled still waits for its end: a lock may depend on it.
        """
        done: Future[T] = Future()
        # A thread for each piece, which takes the most urgent: perhaps another than this.
        self._threads.submit(self._do_next)
        self._queue.put((time.monotonic() + delay, next(self._numbers), work, done))
        future = asyncio.wrap_future(done)
        cancelled = False
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            future.exception()
            raise asyncio.CancelledError
        return future.result()

    def close(self) -> None:
        """Do what is left, then end the threads."""
        self._threads.shutdown()

    def _do_next(self) -> None:
        _, _, work, done = self._queue.get()
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)


@final
class Session:
    """An open memory and the locks that its users wait for.

    Writers go one at a time, first come first served, and hold the state for one block at a time.
    Whoever asks holds the state too, so it sees the memory as it stands between two blocks. Locks
    are fair: asking waits for one block at most, and reading for those who asked before.
    """

    def __init__(self, name: str, memory: Memory, pool: Pool, limits: Limits) -> None:
        self.name = name
        self.memory = memory
        self.users = 0
        self.used = time.monotonic()
        self.closed = False
        self.broken = False
        self.stopping = False
        self._pool = pool
        self._limits = limits
        self._writing = asyncio.Lock()
        self._state = asyncio.Lock()
        self._before: Memory | None = None
        """While it forgets: the memory as it was, and the lock of those who ask that one."""
        self._asking_before = asyncio.Lock()
        self._waiting = 0

    @property
    def entries(self) -> int:
        """How many words are left; while it forgets, how many there were."""
        return len(self.memory if self._before is None else self._before)

    async def ask(self, work: Callable[[Memory], T]) -> T:
        """Let a thread ask the memory as it stands between two blocks.

        While it forgets, which is reading again, it is asked as it was before.
        """
        with self._queued():
            while True:
                before = self._before
                async with self._state if before is None else self._asking_before:
                    # Who had to wait may have waited for the wrong one.
                    if self._before is before:
                        self._check_open()
                        memory = self.memory if before is None else before
                        return await self._pool.run(partial(work, memory))

    async def read(
        self, lines: Iterable[Line], time: datetime | None = None, document: str | None = None
    ) -> AsyncGenerator[Reading, None]:
        """Read lines block by block; all durable once this ends.

        Of a `document` that was read before, what is there already is passed over, and if it has
        changed it is forgotten first. When the service stops, it ends with an error; the blocks
        that were given out are durable.
        """
        async with self._one_writer():
            skip = 0 if document is None else await self._known(lines, document)
            readings = iter(self.memory.follow(lines, time=time, whole=True, skip=skip))
            try:
                while True:
                    async with self._state:
                        self._check_open()
                        reading = await self._change(lambda: next(readings, None))
                    if reading is None:
                        return
                    yield reading
                    if self.stopping:
                        raise stopping()
            finally:
                async with self._state:
                    await self._change(readings.close)  # type: ignore[attr-defined]

    async def _known(self, lines: Iterable[Line], document: str) -> int:
        """How many words of a document are there already; none once a changed one is forgotten."""
        async with self._state:
            self._check_open()
            known = await self._pool.run(lambda: self.memory.known_words(lines, document))
        if known is None:
            await self._forget(lambda memory: memory.forget(document))
        return known or 0

    async def forget(self, work: Callable[[Memory], T]) -> T:
        """Let a thread make the memory forget, in one go; meanwhile it is asked as it was."""
        async with self._one_writer():
            return await self._forget(work)

    async def _forget(self, work: Callable[[Memory], T]) -> T:
        async with self._state:
            self._check_open()
            self._before = await self._pool.run(self.memory.view)
        try:
            return await self._change(lambda: work(self.memory))
        finally:
            async with self._asking_before, self._state:
                before, self._before = self._before, None
                await self._pool.run(before.close)

    async def close(self) -> None:
        """Wait for all who came before, then close the memory; who comes later is refused."""
        async with self._writing, self._state:
            if not self.closed:
                self.closed = True
                await self._pool.run(self.memory.close)

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
    async def _one_writer(self) -> AsyncIterator[None]:
        with self._queued():
            await self._writing.acquire()
        try:
            yield
        finally:
            self._writing.release()

    async def _change(self, work: Callable[[], T]) -> T:
        """Something that changes the memory; if that fails half-way, it must be opened again."""
        try:
            return await self._pool.run(work, delay=READING_DELAY)
        except (OSError, UnboundedError, MemoryError):
            self.broken = True
            raise

    def _check_open(self) -> None:
        if self.closed:
            raise Refused(404, "no_memory", "there is no memory of that name any more")
