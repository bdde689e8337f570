"""The middleware that every request passes before a route sees it: host, site, key, right, size."""

import ipaddress
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, final

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from unbounded.memory.opening import LONGEST, PATTERN
from unbounded.serve.keys import ANYBODY, Key, Keys
from unbounded.serve.limits import InFlight, RequestBody, ResponseSender
from unbounded.serve.refusals import Refused, busy, from_library, stopping
from unbounded.serve.registry import Registry

ALWAYS = ("/healthz", "/readyz", "/metrics")
OPEN = (*ALWAYS, "/", "/docs", "/v1/openapi.json")
"""What is served without a key, beside the parts of the page."""

NAMED = re.compile(r"/v1/(?:memories|models)/([^/]*)(?:/([^/]*))?")
ASKING = ("score", "predict", "complete")


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
            refused = next(_refusals(error), None)
            if refused is None:
                self._observer.failed(error, request=answer.id)
                refused = from_library(error)
            await answer.refuse(refused, scope, receive)
        finally:
            self._in_flight.bytes -= request.size
            self._requests -= 1
            self._observer.under_way.set(self._requests)
            self._log(scope, answer, time.monotonic() - began)

    def _check(self, scope: Scope, request: RequestBody) -> None:
        headers, path = request.headers, scope["path"]
        keys = self._keys if self._keys is not None and self._keys.on else None
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


def _refusals(error: BaseException) -> Iterator[Refused]:
    """The refusals inside an error that wraps others."""
    if isinstance(error, Refused):
        yield error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _refusals(one)


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
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)],
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
