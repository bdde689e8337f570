"""Steps of the network for many users at once.

The network is frozen and shared, so that texts that are asked about at the same time can go
through it side by side. While one batch is computed the next one gathers: nobody waits for company.
Reading does not take part: with others beside it a state comes out different in its last bits, and
a memory must be, to the bit, what its journal gives when it is read again.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import final

from unbounded.lm import RecurrentModel
from unbounded.lm.together import Advanced, advance_together
from unbounded.serve.workers import Workers
from unbounded.types import Ids, State

LONGEST = 64
"""Words; a longer text is no burden to itself, and would be one to the others."""

MOST = 32
"""Texts in a batch."""


@final
class Batching:
    """Gathers what is asked of one network while it is busy, and asks it once for all."""

    def __init__(
        self,
        lm: RecurrentModel,
        workers: Workers,
        told: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._lm = lm
        self._workers = workers
        self._told = told
        self._waiting: list[tuple[State, Ids, asyncio.Future[Advanced]]] = []
        self._task: asyncio.Task[None] | None = None

    async def advance(self, state: State, words: Ids) -> Advanced:
        """As the network's own, together with whoever else asks meanwhile."""
        future: asyncio.Future[Advanced] = asyncio.get_running_loop().create_future()
        self._waiting.append((state, words, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        while self._waiting:
            jobs, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            try:
                found = await self._workers.run(
                    partial(
                        advance_together, self._lm, [(state, words) for state, words, _ in jobs]
                    )
                )
            except BaseException as error:
                for *_, future in jobs:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            self._told(len(jobs))
            for (*_, future), advanced in zip(jobs, found, strict=True):
                if not future.done():
                    future.set_result(advanced)
