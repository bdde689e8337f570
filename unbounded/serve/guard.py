"""What every request passes before any route sees it, and what every answer carries."""

import ipaddress
import re
import time
from collections.abc import Collection
from typing import Any, final

from starlette.types import ASGIApp, Receive, Scope, Send

from unbounded.serve.access import about, require
from unbounded.serve.bodies import Held, Incoming, Outgoing
from unbounded.serve.keys import ANYBODY
from unbounded.serve.refusals import Refused, busy, from_library, stopping
from unbounded.serve.state import Service

ALWAYS = ("/healthz", "/readyz", "/metrics")
OPEN = (*ALWAYS, "/", "/v1/openapi.json")
"""What is served without a key, beside the parts of the page."""

NAMED = re.compile(r"/v1/(?:memories|models)/([^/]*)(?:/([^/]*))?")
ASKING = ("score", "predict", "complete")


@final
class Guard:
    """Whatever can be refused before the body is read is refused here, and nowhere else.

    Host, site, key, right, content type, size; then the body is counted as it comes, and the answer
    as it goes; then the log and the figures.
    """

    def __init__(self, app: ASGIApp, service: Service, hosts: Collection[str]) -> None:
        """`hosts` are names by which it may be called where keys are off; see `known`."""
        self.service = service
        self._app = app
        self._limits = service.limits
        self._observer = service.observer
        self._hosts = {host.lower() for host in hosts}
        self.stopping = False
        self._held = Held()
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        limits = self._limits
        reads = scope["method"] == "POST" and scope["path"].endswith("/read")
        request = Incoming(
            scope, receive, self._held, limits, limits.body if reads else limits.asking
        )
        answer = Outgoing(send, self._held)
        self._under_way += 1
        self._observer.under_way.set(self._under_way)
        try:
            self._check(scope, request)
            await self._app(scope, request, answer)
        except Refused as refused:
            await answer.refuse(refused)
        except Exception as error:
            found = next(_refusals(error), None)
            if found is None:
                self._observer.failed(error, request=answer.id)
                found = from_library(error)
            await answer.refuse(found)
        finally:
            self._held.bytes -= request.held
            self._under_way -= 1
            self._observer.under_way.set(self._under_way)
            self._tell(scope, answer, time.monotonic() - began)

    def _check(self, scope: Scope, request: Incoming) -> None:
        headers, path = request.headers, scope["path"]
        keys = self.service.keys
        if keys is not None and not keys.on:
            keys = None
        if keys is None and not known(headers.get(b"host", ""), self._hosts):
            raise Refused(400, "bad_host", "this service does not answer to that host name")
        if path in ALWAYS:
            return
        if headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(403, "cross_site", "other sites may not call this service")
        if self.stopping:
            raise stopping()
        scope["key"] = ANYBODY
        if keys is not None and path not in OPEN and not path.startswith("/page/"):
            scope["key"] = key = keys.holder(headers.get(b"authorization"))
            about(scope)["key"] = key.id
            if named := NAMED.fullmatch(path):
                asks = scope["method"] == "GET" or named[2] in ASKING
                require(key, named[1], "read" if asks else "write")
        if self._under_way > self._limits.requests or self._held.bytes > self._limits.held:
            raise busy(2)
        if scope["method"] in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "bad_type", "send JSON, with 'Content-Type: application/json'")
        request.check_length()

    def _tell(self, scope: Scope, answer: Outgoing, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        labels = (scope["method"], route, str(answer.status))
        known = scope["method"] in ("GET", "POST", "DELETE", "HEAD", "OPTIONS")
        self._observer.requests.labels(labels[0] if known else "other", *labels[1:]).inc()
        self._observer.seconds.labels(route).observe(seconds)
        if scope["path"] not in ALWAYS:
            told = {"request": answer.id, "method": labels[0] if known else "other"}
            told |= {"route": route, "status": answer.status, "ms": round(seconds * 1e3, 1)}
            self._observer.log("request", **told, **about(scope))


def _refusals(error: BaseException) -> Any:
    """The refusals inside an error that wraps others."""
    if isinstance(error, Refused):
        yield error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _refusals(one)


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/?#\s]+)(?::[0-9]{1,5})?")


def known(host: str, names: Collection[str]) -> bool:
    """Whether a request without a key may call the service so: by an address, or a name of ours.

    A page elsewhere can have its own name lead here and ask in our user's stead; an address it
    cannot, for then this is where the page itself would be from.

    >>> [known(host, ["box"]) for host in ("[::1]:80", "10.0.0.7", "Box:80", "[::1]evil.com", "b")]
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
