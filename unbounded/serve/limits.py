"""How much a request may ask for; bodies and answers counted as they come and go."""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import final
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from unbounded.serve.refusals import Refused, busy

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}


@dataclass(frozen=True)
class Limits:
    """Numbers that keep one request from being everybody's trouble."""

    body: int = 32 << 20
    """Bytes of a request to read; of any other, `asking`."""

    in_flight: int = 256 << 20
    """Bytes of requests and answers that are under way together."""

    text: int = 16_000_000
    """Characters that are read at once."""

    line: int = 1_000_000
    """Characters of a line that is read: it is split into words in one go."""

    ask: int = 100_000
    """Characters or tokens that are scored, or that come before a prediction."""

    documents: int = 1000
    """Documents in one answer."""

    days: int = 1000
    """Days in one answer."""

    memories: int = 256
    open: int = 64
    """Memories that are open at a time; who waited longest is closed for the next."""

    waiting: int = 64
    """Requests that wait for one memory; the next is told to come again (429)."""

    requests: int = 512
    """Requests under way in all."""

    connections: int = 512
    """Connections in all; whoever has asked for nothing for longest is closed for the next."""

    idle: float = 10.0
    """Seconds that a connection may be open without having sent the head of a request."""

    sending: float = 60.0
    """Seconds in which a request must have come."""

    taking: float = 20.0
    """Seconds in which some of an answer must have been taken, or the connection ends."""

    events: int = 256
    """Events of an answer that wait to be taken."""

    seconds: float = 60.0
    """What asking may take, waiting included; reading is as long as its text."""

    grace: float = 20.0
    """What is under way when the service stops may take so long; a read then ends at a block."""

    words: int = 256
    """Words that are written at once."""

    explained: int = 2048
    """Words of a prompt for which the likeliest others are named too."""

    @property
    def asking(self) -> int:
        """Bytes of a request that asks: no character needs more than twelve, as two escapes."""
        return 12 * self.ask + (64 << 10)


@dataclass
class InFlight:
    """Bytes of all requests and answers that are under way."""

    bytes: int = 0


def too_large(limit: int) -> Refused:
    """More bytes than a request may have."""
    return Refused(413, "too_large", f"the request is larger than {limit:,} bytes; send less")


class BodyRefused(HTTPException):
    """A refusal in the middle of a body; of this kind, for the framework lets no other through."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.status)
        self.refused = refused


@final
class RequestBody:
    """A body that ends in a refusal once it is too long, whatever it said, or too slow.

    What stands outside of its strings is bounded as if it asked: the parser takes a hundred times
    as long for a list of lists as for a text of that length, and lets nobody in meanwhile.
    """

    def __init__(
        self, scope: Scope, receive: Receive, in_flight: InFlight, limits: Limits, limit: int
    ) -> None:
        self.headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self.size = 0
        self._receive = receive
        self._in_flight = in_flight
        self._limits = limits
        self._limit = limit
        self._structure = Structure()
        self._whole = False
        self._until = time.monotonic() + limits.sending

    def check_length(self) -> None:
        """Refuse what says of itself that it is too long."""
        length = self.headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > self._limit:
            raise too_large(self._limit)

    async def __call__(self) -> Message:
        """The next part of it."""
        if self._whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._until - time.monotonic())
        except TimeoutError:
            late = Refused(408, "too_slow", "the request did not come to its end in time")
            raise BodyRefused(late) from None
        self._whole = not message.get("more_body", False)
        data = message.get("body", b"")
        self.size += len(data)
        self._in_flight.bytes += len(data)
        if self.size > self._limit:
            raise BodyRefused(too_large(self._limit))
        if self._structure.add(data) > self._limits.asking:
            raise BodyRefused(too_large(self._limits.asking))
        if self._in_flight.bytes > self._limits.in_flight:
            raise BodyRefused(busy(2))
        return message


@final
class Structure:
    """How much of a JSON text stands outside of its strings, told as it comes.

    >>> structure = Structure()
    >>> [structure.add(data) for data in (b'{"a": "b\\\\', b'"[[[ ", "c', b'": 1}')]
    [3, 5, 9]
    """

    _ESCAPED = re.compile(rb"\\.", re.DOTALL)

    def __init__(self) -> None:
        self._outside = 0
        self._inside = False
        self._half = b""

    def add(self, data: bytes) -> int:
        """Bytes outside of strings, so far."""
        data = self._ESCAPED.sub(b"", self._half + data)
        self._half = b"\\" * data.endswith(b"\\")
        parts = data.removesuffix(self._half).split(b'"')
        self._outside += sum(map(len, parts[self._inside :: 2]))
        self._inside ^= len(parts) % 2 == 0
        return self._outside


@final
class ResponseSender:
    """Adds the headers that all answers carry, remembers the status, sends what is taken."""

    PIECE = 64 << 10

    def __init__(self, send: Send, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._send = send
        self.id = uuid4().hex[:12]
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a part of it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            had = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in had]
            more.append((b"x-request-id", self.id.encode()))
            await self._send({**message, "headers": [*message["headers"], *more]})
            return
        # Piece by piece: the server waits before each until most of the last was taken.
        data = message.get("body", b"")
        self._in_flight.bytes += len(data)
        try:
            for start in range(0, len(data) - self.PIECE, self.PIECE):
                piece = data[start : start + self.PIECE]
                await self._send({**message, "body": piece, "more_body": True})
            rest = data[(max(len(data) - 1, 0) // self.PIECE) * self.PIECE :]
            await self._send({**message, "body": rest})
        finally:
            self._in_flight.bytes -= len(data)

    async def refuse(self, refused: Refused, scope: Scope, receive: Receive) -> None:
        """Say why not, unless half an answer is out."""
        if self.status:
            # The connection ends without the answer's end: nobody takes it for a whole one.
            raise refused
        response = JSONResponse(refused.body, refused.status, headers=refused.headers)
        await response(scope, receive, self)
