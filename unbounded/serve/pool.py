"""A pool of threads that takes work by who has waited longest; reading lets others go first."""

import asyncio
import heapq
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, TypeVar, final

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
        future = asyncio.wrap_future(self._submit(work, delay))
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

    def _submit(self, work: Callable[[], T], delay: float) -> "Future[T]":
        future: Future[T] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            due = time.monotonic() + delay
            heapq.heappush(self._heap, (due, next(self._numbers), work, future))
            self._changed.notify()
        return future

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
