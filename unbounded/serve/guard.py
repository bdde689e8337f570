"""What every request passes before any route sees it, and what every answer carries."""

import asyncio
import json
import time
from typing import Any, final
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unbounded.serve.refusals import Refused, body, busy, stopping
from unbounded.serve.state import Service

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
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
ALWAYS = ("/healthz", "/readyz", "/metrics")


@final
class Guard:
    """Hosts, sites, content types, sizes, numbers; then the log and the figures.

    `hosts` are those that a request may name; None is all. Where keys are off it is the loopback's
    names, or a page elsewhere could have its own name lead here and ask in our user's stead.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        hosts: tuple[str, ...] | None,
    ) -> None:
        self.service = service
        limits, observer = service.limits, service.observer
        self._app = app
        self._limits = limits
        self._observer = observer
        self._hosts = hosts
        self.stopping = False
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, answer = time.monotonic(), _Answer(send)
        counted = _Counted(receive, self._limits.body, self._limits.sending)
        self._under_way += 1
        self._observer.under_way.set(self._under_way)
        try:
            self._check(scope)
            await self._app(scope, counted, answer)
        except Refused as refused:
            await _refuse(answer, refused)
        except Exception as error:
            found = next(_refusals(error), None)
            if found is None:
                self._observer.failed(error, request=answer.id)
                found = Refused(500, "internal", "something went wrong inside; the log says where")
            await _refuse(answer, found)
        finally:
            self._under_way -= 1
            self._observer.under_way.set(self._under_way)
            self._tell(scope, answer, time.monotonic() - began)

    def _check(self, scope: Scope) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise Refused(400, "bad_host", "this service does not answer to that host name")
        if scope["path"] in ALWAYS:
            return
        if headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(403, "cross_site", "other sites may not call this service")
        if self.stopping:
            raise stopping()
        if self._under_way > self._limits.requests:
            raise busy(2)
        if scope["method"] in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "bad_type", "send JSON, with 'Content-Type: application/json'")
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > self._limits.body:
            raise too_large(self._limits.body)

    def _tell(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        labels = (scope["method"], route, str(answer.status))
        known = scope["method"] in ("GET", "POST", "DELETE", "HEAD", "OPTIONS")
        self._observer.requests.labels(labels[0] if known else "other", *labels[1:]).inc()
        self._observer.seconds.labels(route).observe(seconds)
        if scope["path"] not in ALWAYS:
            about: dict[str, Any] = scope.get("about", {})
            told = {"request": answer.id, "method": labels[0] if known else "other"}
            told |= {"route": route, "status": answer.status, "ms": round(seconds * 1e3, 1)}
            self._observer.log("request", **told, **about)


def too_large(limit: int) -> Refused:
    """More bytes than a request may have."""
    return Refused(413, "too_large", f"the request is larger than {limit:,} bytes; send less")


class CutOff(HTTPException):
    """A refusal in the middle of a body; of this kind, for the framework lets no other through."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.status)
        self.refused = refused


class _Counted:
    """A body that ends in a refusal once it is too long, whatever it said, or too slow."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._limit = limit
        self._seen = 0
        self._whole = False
        self._until = time.monotonic() + seconds

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._until - time.monotonic())
        except TimeoutError:
            late = Refused(408, "too_slow", "the request did not come to its end in time")
            raise CutOff(late) from None
        self._whole = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._seen > self._limit:
            raise CutOff(too_large(self._limit))
        return message


class _Answer:
    """Adds the headers that all answers carry, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.id = uuid4().hex[:12]
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            had = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in had]
            more.append((b"x-request-id", self.id.encode()))
            message = {**message, "headers": [*message["headers"], *more]}
        await self._send(message)


async def _refuse(answer: _Answer, refused: Refused) -> None:
    if answer.status:
        # Half an answer is out; the connection ends without its end, so that nobody takes it
        # for a whole one.
        raise refused
    data = json.dumps(body(refused.status, refused.code, str(refused))).encode()
    headers = {"content-type": "application/json", "content-length": str(len(data))}
    headers |= refused.headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await answer({"type": "http.response.start", "status": refused.status, "headers": encoded})
    await answer({"type": "http.response.body", "body": data})


def _refusals(error: BaseException) -> Any:
    """The refusals inside an error that wraps others."""
    if isinstance(error, Refused):
        yield error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _refusals(one)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if ":" in host else host
