"""Answers: whole, or as server-sent events while they are made."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, final

from fastapi.responses import Response, StreamingResponse

from unbounded.memory import Memory
from unbounded.memory.sampling import Source
from unbounded.model import OnlineModel
from unbounded.serve.limits import Refused, from_library, stopping, too_slow
from unbounded.serve.registry import Registry
from unbounded.serve.session import Pool

DONE = "[DONE]"

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

TURN = 0.1
"""Seconds after which whoever generates at length sends what there is, and lets others in."""


@final
class EventQueue:
    """Events between who works and who is sent them; it says when it is full.

    Who reads never waits for who listens, and sends less; who asks waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._taken = asyncio.Event()
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done with the first event; raises the refusal if that is what comes first."""
        self._failure: Refused | None = None
        self.abandoned = False
        """Whether nobody listens any more."""

    def put(self, *events: Any) -> None:
        """Send something, from the loop's own thread; None is the end."""
        if events and not self.begun.done():
            self.begun.set_result(None)
        for event in events:
            self._queue.put_nowait(event)

    def fail(self, error: Exception) -> None:
        """It went wrong: said by the answer itself if nothing was sent yet."""
        self._failure = from_library(error)
        if self.begun.done():
            self.put(self._failure.body, None)
        else:
            self.begun.set_exception(self._failure)

    @property
    def full(self) -> bool:
        """Whether as many wait as may."""
        return self._queue.qsize() >= self._most

    async def room(self) -> None:
        """Wait until somebody has taken some, or left."""
        while self.full and not self.abandoned:
            self._taken.clear()
            await self._taken.wait()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while (event := await self._queue.get()) is not None:
                self._taken.set()
                yield event
        finally:
            self.abandoned = True
            self._taken.set()

    async def collect(self) -> list[Any]:
        """All events; raises the refusal if it ended in one."""
        events = [event async for event in self]
        if self._failure is not None:
            raise self._failure
        return events


async def begin_events(
    registry: Registry, name: str, work: Callable[[EventQueue], Awaitable[None]]
) -> EventQueue:
    """The events of work that goes on even if nobody listens; once the first is there."""
    events = EventQueue(registry.limits.events)

    async def run() -> None:
        try:
            await work(events)
            events.put(None)
        except Exception as error:
            events.fail(error)
            if not isinstance(error, Refused):
                registry.observer.failed(error, memory=name)

    registry.begin(run())
    await events.begun
    return events


@final
class _Turn:
    """What is asked in this turn: the memory, or while it forgets the one that it was before."""

    online: OnlineModel
    version: object


async def begin_pieces(
    registry: Registry, name: str, pieces: Callable[[Source], Iterator[Any]]
) -> EventQueue:
    """What a thread generates while it asks a memory, a piece an event, and `DONE`."""
    limits, loop = registry.limits, asyncio.get_running_loop()
    deadline = loop.time() + limits.seconds
    source = _Turn()
    made = pieces(source)

    async def work(events: EventQueue) -> None:
        def turn(memory: Memory) -> bool:
            """Send pieces for a while; whether there are more."""
            source.online, source.version = memory.online, memory.version
            end, batch = loop.time() + TURN, list[Any]()
            try:
                for piece in made:
                    batch.append(piece)
                    if events.abandoned:
                        return False
                    if not registry.ready:
                        raise stopping()
                    if (now := loop.time()) > deadline:
                        raise too_slow(limits.seconds)
                    if now > end or len(batch) >= limits.events:
                        return True
                return False
            finally:
                # In one go: an errand to the loop for every piece would be its whole day.
                loop.call_soon_threadsafe(events.put, *batch)

        async with registry.session(name) as session:
            while await session.ask(turn):
                try:
                    async with asyncio.timeout_at(deadline):
                        await events.room()
                except TimeoutError:
                    raise too_slow(limits.seconds) from None
        events.put(DONE)

    return await begin_events(registry, name, work)


def streamed(events: EventQueue) -> StreamingResponse:
    """The events as they come."""

    async def lines() -> AsyncIterator[str]:
        async for event in events:
            data = event if isinstance(event, str) else json.dumps(event, allow_nan=False)
            yield f"data: {data}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def json_answer(pool: Pool, value: Any) -> Response:
    """A whole answer, encoded by a thread that lets others in meanwhile, as `encode` would not."""
    data = await pool.run(lambda: "".join(_ENCODER.iterencode(value)).encode())
    return Response(data, media_type="application/json")
