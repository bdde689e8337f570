"""Answers: whole, or as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, final

from fastapi.responses import Response, StreamingResponse

from unbounded.serve.refusals import body, from_library
from unbounded.serve.workers import Workers

DONE = "[DONE]"

MOST = 512
"""Items of a list that are encoded in one go: the encoder holds the interpreter meanwhile."""


@final
class Events:
    """A queue between who works and who is told, which says when it is full.

    Who reads never waits for who is told, and tells less; who asks waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unwanted: Callable[[Any], bool] = lambda event: False
        self.left = False
        """Whether nobody listens any more."""

    def put(self, event: Any) -> None:
        """Tell something, from the loop's own thread."""
        if not self._begun.done():
            self._begun.set_result(None)
        self._queue.put_nowait(event)

    def put_all(self, events: list[Any]) -> None:
        """Tell several things."""
        for event in events:
            self.put(event)

    def fail(self, error: Exception) -> None:
        """Tell that it went wrong, by the answer itself if nothing was told yet."""
        refused = from_library(error)
        if not self._begun.done():
            self._begun.set_exception(refused)
            return
        self._queue.put_nowait(body(refused.status, refused.code, str(refused)))
        self.end()

    def end(self) -> None:
        """There is nothing more to tell."""
        if not self._begun.done():
            self._begun.set_result(None)
        self._queue.put_nowait(None)

    def without(self, unwanted: Callable[[Any], bool]) -> "Events":
        """The same queue; some events of it are not told."""
        self._unwanted = unwanted
        return self

    @property
    def full(self) -> bool:
        """Whether as many wait as may."""
        return self._queue.qsize() >= self._most

    async def room(self) -> None:
        """Wait until somebody has taken some, or left."""
        while self.full and not self.left:
            self._taken.clear()
            await self._taken.wait()

    async def begun(self) -> None:
        """Wait for the first event; raises the refusal if that is what comes first."""
        await self._begun

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while (event := await self._queue.get()) is not None:
                self._taken.set()
                if not self._unwanted(event):
                    yield event
        finally:
            self.left = True
            self._taken.set()


def streamed(events: Events) -> StreamingResponse:
    """The events as they come."""

    async def lines() -> AsyncIterator[str]:
        async for event in events:
            data = event if isinstance(event, str) else json.dumps(event, allow_nan=False)
            yield f"data: {data}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def answer(workers: Workers, found: Any) -> Response:
    """What was found, as the body of an answer."""
    data = await workers.run(lambda: "".join(_encoded(found)).encode())
    return Response(data, media_type="application/json")


def _encoded(value: Any) -> Iterator[str]:
    """The parts of a JSON text.

    >>> "".join(_encoded({"a": [1, {"b": None}], "c": []}))
    '{"a":[1,{"b":null}],"c":[]}'
    >>> json.loads("".join(_encoded(list(range(2000))))) == list(range(2000))
    True
    """
    if isinstance(value, dict):
        between = "{"
        for name, one in value.items():
            yield f"{between}{_text(name)}:"
            yield from _encoded(one)
            between = ","
        yield "}" if value else "{}"
    elif isinstance(value, list) and len(value) > MOST:
        for start in range(0, len(value), MOST):
            yield "," if start else "["
            yield _text(value[start : start + MOST])[1:-1]
        yield "]"
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield "," if at else "["
            yield from _encoded(one)
        yield "]" if value else "[]"
    else:
        yield _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
