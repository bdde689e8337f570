"""How asking is done: within its time, and with the network's steps shared among users."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from unbounded.lm.together import Advanced
from unbounded.memory import Memory
from unbounded.serve.batching import LONGEST
from unbounded.serve.events import Events
from unbounded.serve.refusals import Refused, stopping
from unbounded.serve.session import Session
from unbounded.serve.state import Service

T = TypeVar("T")

TURN = 0.1
"""Seconds after which whoever writes at length tells it, and lets others in."""


def too_slow(seconds: float) -> Refused:
    """It was not done in time."""
    return Refused(
        503, "too_slow", f"it was not done within {seconds:g} s; ask for less", retry_after=5
    )


async def within(service: Service, work: Awaitable[T]) -> T:
    """The result, if it is there in time."""
    try:
        async with asyncio.timeout(service.limits.seconds):
            return await work
    except TimeoutError:
        raise too_slow(service.limits.seconds) from None


async def ask_after(
    service: Service,
    name: str,
    words: list[str],
    work: Callable[[Memory, Advanced | None], T],
) -> T:
    """Ask a memory as it stands between two blocks, once the network has gone over the words."""

    async def asked() -> T:
        async with service.registry.session(name) as session, session.held() as memory:
            advanced = await _ahead(session, memory, words)
            return await service.workers.run(lambda: work(memory, advanced))

    return await within(service, asked())


async def _ahead(session: Session, memory: Memory, words: list[str]) -> Advanced | None:
    """Let the network go over the words, in company; None if they had better go alone."""
    if session.batching is None or not 0 < len(words) <= LONGEST:
        return None
    online = memory.online
    return await session.batching.advance(online.network_state, online.ids(words))


async def begin_telling(
    service: Service, name: str, pieces: Callable[[Memory], Iterator[Any]], last: list[Any]
) -> Events:
    """Events of a thread that asks a memory; once the first is there, or a refusal instead."""
    events = Events(service.limits.events)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + service.limits.seconds

    going: list[Iterator[Any]] = []

    def some(memory: Memory) -> bool:
        """Tell pieces for a while; whether there are more."""
        if not going:
            going.append(iter(pieces(memory)))
        turn, batch = loop.time() + TURN, list[Any]()
        try:
            for piece in going[0]:
                batch.append(piece)
                if events.left:
                    return False
                if not service.ready:
                    raise stopping()
                if (now := loop.time()) > deadline:
                    raise too_slow(service.limits.seconds)
                if now > turn or len(batch) >= service.limits.events:
                    return True
            return False
        finally:
            # In one go: an errand to the loop for every piece would be its whole day.
            loop.call_soon_threadsafe(events.put_all, batch)

    async def tell() -> None:
        try:
            async with service.registry.session(name) as session:
                while await session.ask(some):
                    async with asyncio.timeout_at(deadline):
                        await events.room()
            for event in last:
                events.put(event)
            events.end()
        except TimeoutError:
            events.fail(too_slow(service.limits.seconds))
        except Exception as error:
            events.fail(error)
            if not isinstance(error, Refused):
                service.observer.failed(error, memory=name)

    service.begin(tell())
    await events.begun()
    return events
