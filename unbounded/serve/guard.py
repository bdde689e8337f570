"""The middleware that every request passes before a route sees it: host, site, key, right, size."""

import asyncio
import ipaddress
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, final
from uuid import uuid4

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unbounded.memory.opening import LONGEST, PATTERN
from unbounded.serve.keys import ANYBODY, Key, Keys
from unbounded.serve.limits import Limits, Refused, busy, from_library, stopping, too_large
from unbounded.serve.registry import Registry

ALWAYS = ("/healthz", "/readyz", "/metrics")
OPEN = (*ALWAYS, "/", "/docs", "/v1/openapi.json")
"""What is served without a key, beside the parts of the page."""

NAMED = re.compile(r"/v1/(?:memories|models)/([^/]*)(?:/([^/]*))?")
ASKING = ("score", "predict", "complete")


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


@dataclass
class InFlight:
    """Bytes of all requests and answers that are under way."""

    bytes: int = 0


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
            late = "the request did not come to its end in time"
            raise Refused(408, "too_slow", late) from None
        self._whole = not message.get("more_body", False)
        data = message.get("body", b"")
        self.size += len(data)
        self._in_flight.bytes += len(data)
        if self.size > self._limit:
            raise too_large(self._limit)
        if self._structure.add(data) > self._limits.asking:
            raise too_large(self._limits.asking)
        if self._in_flight.bytes > self._limits.in_flight:
            raise busy(2)
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


@final
class Guard:
    """Whatever can be refused before the body is read is refused here, and nowhere else.

    Host, site, key, right, content type, size; then the body is counted as it comes, and the answer
    as it goes; then the log and the metrics.
    """

    def __init__(
        self, app: ASGIApp, registry: Registry, keys: Keys | None, hosts: Collection[str]
    ) -> None:
        """`hosts` are names by which it may be called where keys are off; see `known_host`."""
        self.registry = registry
        self._app = app
        self._keys = keys
        self._limits = registry.limits
        self._observer = registry.observer
        self._hosts = {host.lower() for host in hosts}
        self._in_flight = InFlight()
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        limits = self._limits
        reads = scope["method"] == "POST" and scope["path"].endswith("/read")
        limit = limits.body if reads else limits.asking
        request = RequestBody(scope, receive, self._in_flight, limits, limit)
        answer = ResponseSender(send, self._in_flight)
        self._requests += 1
        self._observer.under_way.set(self._requests)
        try:
            self._check(scope, request)
            await self._app(scope, request, answer)
        except Exception as error:
            if not isinstance(error, Refused):
                self._observer.failed(error, request=answer.id)
            await answer.refuse(from_library(error), scope, receive)
        finally:
            self._in_flight.bytes -= request.size
            self._requests -= 1
            self._observer.under_way.set(self._requests)
            self._log(scope, answer, time.monotonic() - began)

    @property
    def keys_now(self) -> Keys | None:
        """The keys that a request needs one of now; None where it needs none."""
        return self._keys if self._keys is not None and self._keys.on else None

    def _check(self, scope: Scope, request: RequestBody) -> None:
        headers, path, keys = request.headers, scope["path"], self.keys_now
        if keys is None and not known_host(headers.get(b"host", ""), self._hosts):
            raise Refused(400, "bad_host", "this service does not answer to that host name")
        if path in ALWAYS:
            return
        if headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(403, "cross_site", "other sites may not call this service")
        if not self.registry.ready:
            raise stopping()
        scope["key"] = ANYBODY
        if keys is not None and path not in OPEN and not path.startswith("/page/"):
            scope["key"] = key = keys.bearer(headers.get(b"authorization"))
            log_fields(scope)["key"] = key.id
            if named := NAMED.fullmatch(path):
                asks = scope["method"] == "GET" or named[2] in ASKING
                key.require(named[1], "read" if asks else "write")
        if self._requests > self._limits.requests or self._in_flight.bytes > self._limits.in_flight:
            raise busy(2)
        if scope["method"] in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "bad_type", "send JSON, with 'Content-Type: application/json'")
        request.check_length()

    def _log(self, scope: Scope, answer: ResponseSender, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        known = scope["method"] in ("GET", "POST", "DELETE", "HEAD", "OPTIONS")
        method = scope["method"] if known else "other"
        self._observer.requests.labels(method, route, str(answer.status)).inc()
        self._observer.seconds.labels(route).observe(seconds)
        if scope["path"] not in ALWAYS:
            fields = {"request": answer.id, "method": method, "route": route}
            fields |= {"status": answer.status, "ms": round(seconds * 1e3, 1)}
            self._observer.log("request", **fields, **log_fields(scope))


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/?#\s]+)(?::[0-9]{1,5})?")


def known_host(host: str, names: Collection[str]) -> bool:
    """Whether a request without a key may call the service so: by an address, or a name of ours.

    A page elsewhere can have its own name lead here and ask in our user's stead; an address it
    cannot, for then this is where the page itself would be from.

    >>> hosts = ("[::1]:80", "10.0.0.7", "Box:80", "[::1]evil.com", "b")
    >>> [known_host(host, ["box"]) for host in hosts]
    [True, True, True, False, False]
    """
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    name = found[1]
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost" or name in names
    return name.startswith("[") == (":" in name)


def log_fields(scope: Scope) -> dict[str, Any]:
    """What the log will say of this request; names and numbers only."""
    fields: dict[str, Any] = scope.setdefault("log_fields", {})
    return fields


# What routes are given.

_scheme = HTTPBearer(auto_error=False, description="A key of 'unbounded keys add'.")


@dataclass(frozen=True)
class RequestContext:
    """The memories, the key that the guard has found, and what the log will say."""

    registry: Registry
    key: Key
    log: dict[str, Any]


async def _context(
    request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)]
) -> RequestContext:
    scope = request.scope
    return RequestContext(request.app.state.registry, scope["key"], log_fields(scope))


async def _name(
    request: Request,
    name: Annotated[str, Path(pattern=PATTERN, max_length=LONGEST, examples=["notes"])],
) -> str:
    log_fields(request.scope)["memory"] = name
    return name


Context = Annotated[RequestContext, Depends(_context)]
Name = Annotated[str, Depends(_name)]
"""The name of a memory in a path, checked and logged."""
