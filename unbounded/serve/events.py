"""Answers that come in pieces: server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, final

from fastapi.responses import StreamingResponse

from unbounded.errors import UnboundedError
from unbounded.serve.refusals import Refused, body, from_library

DONE = "[DONE]"


@final
class Events:
    """A queue between who works and who is told; who works never waits for who is told."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unwanted: Callable[[Any], bool] = lambda event: False
        self.left = False
        """Whether nobody listens any more."""

    def put(self, event: Any) -> None:
        """Tell something, from the loop's own thread."""
        if not self._begun.done():
            self._begun.set_result(None)
        self._queue.put_nowait(event)

    def fail(self, error: Exception) -> None:
        """Tell that it went wrong, by the answer itself if nothing was told yet."""
        refused = from_library(error) if isinstance(error, UnboundedError) else None
        refused = refused or Refused(500, "internal", "something went wrong inside")
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

    async def begun(self) -> None:
        """Wait for the first event; raises the refusal if that is what comes first."""
        await self._begun

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while (event := await self._queue.get()) is not None:
                if not self._unwanted(event):
                    yield event
        finally:
            self.left = True


def streamed(events: Events) -> StreamingResponse:
    """The events as they come."""

    async def lines() -> AsyncIterator[str]:
        async for event in events:
            data = event if isinstance(event, str) else json.dumps(event, allow_nan=False)
            yield f"data: {data}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")
