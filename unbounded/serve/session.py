"""One open memory among many users: reading in order, asking in between; the threads for both."""

import asyncio
import heapq
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, TypeVar, final

from unbounded.corpus import Line
from unbounded.errors import UnboundedError
from unbounded.memory import Memory
from unbounded.model import Reading
from unbounded.serve.limits import Limits
from unbounded.serve.refusals import Refused, busy, stopping

T = TypeVar("T")

READING_DELAY = 0.25
"""Seconds that reading waits for those who only ask; so neither can starve the other."""


@final
class Pool:
    """A few threads and one queue, ordered by when each piece of work should begin."""

    def __init__(self, threads: int) -> None:
        self._heap: list[tuple[float, int, Callable[[], Any], Future[Any]]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"pool-{i}", daemon=True)
            for i in range(threads)
        ]

    def start(self) -> None:
        """Begin to take work."""
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        """Pieces of work that wait."""
        return len(self._heap)

    async def run(self, work: Callable[[], T], *, delay: float = 0.0) -> T:
        """Have it done by a thread; with a delay, after those who came a little later.

        Who is cancelled still waits for its end: a lock may depend on it.
        """
        queued: Future[T] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            due = time.monotonic() + delay
            heapq.heappush(self._heap, (due, next(self._numbers), work, queued))
            self._changed.notify()
        future = asyncio.wrap_future(queued)
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
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._heap and not self._closed:
                    self._changed.wait()
                if not self._heap:
                    return
                _, _, work, future = heapq.heappop(self._heap)
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            # What was asked for must not live on in a thread that waits.
            del work, future


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
