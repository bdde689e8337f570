"""The service put together, from a folder and a model until it is told to stop: routes, errors,
connections."""

import gc
import ipaddress
import resource
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from unbounded.errors import SettingError, StoreError, UnboundedError
from unbounded.lm import Pretrained
from unbounded.memory.opening import recorded
from unbounded.serve import openai, page, routes, tokens
from unbounded.serve.guard import Guard
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits, Refused, from_library
from unbounded.serve.observing import Observer, silence_others
from unbounded.serve.registry import Registry
from unbounded.store.layout import NAME, read_about
from unbounded.version import __version__

ABOUT = """One model, many memories. Read into a memory and it knows; ask, and it teaches nothing.
Every error has the body `{"error": {"message", "type", "param", "code"}}`."""


def create_app(
    root: Path,
    model: Pretrained,
    *,
    keys: Keys | None = None,
    limits: Limits = Limits(),
    observer: Observer | None = None,
    threads: int = 2,
    hosts: Collection[str] = (),
    engine: str | None = None,
) -> Guard:
    """The service as an ASGI application; `keys` None is no keys at all, whatever there will be.

    `hosts` are names that it has where keys are off, beside its addresses, 'localhost' and this
    machine's.
    `engine` is where the keys of new memories lie, and of those that have shards.
    """
    observer = observer or Observer()
    registry = Registry(root, model, limits, observer, threads=threads, engine=engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        registry.start()
        yield
        await registry.stop()
        observer.log("stopped")

    app = FastAPI(
        title="unbounded",
        description=ABOUT,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
    )
    app.state.registry = registry
    for module in (routes, openai, tokens, page):
        app.include_router(module.router)
    _add_health(app, registry)
    _add_errors(app, observer)
    return Guard(app, registry, keys, {socket.gethostname(), *hosts})


def _add_health(app: FastAPI, registry: Registry) -> None:
    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """Whether the process lives."""
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], responses={503: {"description": "not yet, or stopping"}})
    async def readyz(response: Response) -> dict[str, str]:
        """Whether it takes requests."""
        response.status_code = 200 if registry.ready else 503
        return {"status": "ready" if registry.ready else "not ready"}

    @app.get("/metrics", tags=["health"], response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        observer, opened = registry.observer, registry.opened()
        observer.forget_shards()
        observer.open.set(len(opened))
        observer.entries.set(sum(session.entries for session in opened.values()))
        observer.queue.set(len(registry.pool))
        for session in opened.values():
            observer.show_shards(session.memory.backend.shard_figures)
        exposition = generate_latest(observer.registry)
        return Response(exposition, media_type="text/plain; version=0.0.4")


def _add_errors(app: FastAPI, observer: Observer) -> None:
    def answer(refused: Refused) -> Response:
        return JSONResponse(refused.body, refused.status, headers=refused.headers)

    @app.exception_handler(UnboundedError)
    async def refused(request: Request, error: UnboundedError) -> Response:
        found = from_library(error)
        if found.status >= 500 and found is not error:
            observer.failed(error)
        return answer(found)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return answer(Refused(400, "bad_json", "the body is no proper JSON"))
        # What was sent is not repeated, an unknown name neither: it may be long, or private.
        unknown = first["type"] == "extra_forbidden"
        place = () if unknown else first["loc"][1:]
        where = ".".join(str(part) for part in place) or "the body"
        return answer(Refused(422, "bad_value", f"{where}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, Refused):
            # In the middle of a body, where the framework lets no other error through.
            return answer(error.__cause__)
        words = {404: "there is nothing here", 405: "not with this method"}
        message = words.get(error.status_code, "the request could not be understood")
        found = Refused(error.status_code, f"http_{error.status_code}", message)
        return JSONResponse(found.body, error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        # The guard tells the log and the user.
        raise error


LEAST = 16 << 10
"""Bytes of an answer that must be taken in `Limits.taking` seconds."""


@final
class Connection(H11Protocol):
    """One connection, checked from time to time: idle, half a request, or an answer nobody takes.

    The server itself bounds only the time between two requests. Of a request that was answered
    before its end the rest is thrown away for as long as a connection may be idle: to close at once
    would take the answer from whoever is still sending.
    """

    def connection_made(self, transport: Any) -> None:
        """Come in; if the house is full, in the place of whoever has been idle for longest."""
        super().connection_made(transport)
        assert isinstance(self.app, Guard)
        self._limits = self.app.registry.limits
        self._since = self._moved = self.loop.time()
        self._left = 0
        # Never more than half of the descriptors that the process may have.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        if len(self.connections) > min(self._limits.connections, most):
            idle = [one for one in self.connections if isinstance(one, Connection) and one.idle]
            oldest = min(idle, key=lambda one: one._since)
            oldest.transport.abort()
            # Now, and not when it has heard of it: the next may come before that.
            self.connections.discard(oldest)
        self._check()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave."""
        self._next.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From now on the next request is waited for."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def idle(self) -> bool:
        """Whether no request is being served."""
        return self.cycle is None or self.cycle.response_complete

    def _check(self) -> None:
        now, left = self.loop.time(), self.transport.get_write_buffer_size()
        # While it may be written to, what is left says nothing of what was taken.
        stands = left and (self.idle or self.flow.write_paused)
        if not stands or not 0 <= self._left - left < LEAST:
            self._moved, self._left = now, left
        limits = self._limits
        if now - self._moved > limits.taking:
            self.transport.abort()
        elif self.idle and not left and now - self._since > limits.idle:
            self.transport.close()
        self._next = self.loop.call_later(min(limits.idle, limits.taking) / 4, self._check)


def server_config(app: Guard) -> uvicorn.Config:
    """How the server is to run: no forwarded headers, no web sockets, no banner."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(app.registry.limits.grace),
        h11_max_incomplete_event_size=64 << 10,
    )


@final
class _Server(uvicorn.Server):
    """Refuses new requests from the moment it is told to stop, while the others end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        assert isinstance(self.config.app, Guard)
        self.config.app.registry.ready = False
        super().handle_exit(sig, frame)


def serve(app: Guard, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until a signal; what was acknowledged is on disk, and all memories are closed."""
    registry, keys = app.registry, app.keys_now
    registry.root.mkdir(parents=True, exist_ok=True)
    if keys is not None and not keys.all():
        say(f"no key is left in {registry.root}: {keys.to_open()}")
    # As many descriptors as the system lets us: a connection is one, a memory a few.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    for name in registry.of_other_models():
        say(f"{name} belongs to another model and is not served; serve it with that one (--model)")
    listening = _listen(host, port)
    silence_others()
    port = listening.getsockname()[1]
    say(f"http://{host if ':' not in host else f'[{host}]'}:{port}/")
    threads = registry.pool.threads
    registry.observer.log("started", port=port, keys=keys is not None, threads=threads)
    # What is there by now stays: no need to go through all of it when an answer has many parts.
    gc.freeze()
    _Server(server_config(app)).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def chosen_keys(root: Path, host: str, *, without_keys: bool) -> Keys | None:
    """The keys, there or to come; None where somebody insists on none."""
    if without_keys:
        return None
    keys = Keys(root, required=not is_loopback(host))
    if keys.on and not keys.all() and not is_loopback(host):
        raise SettingError(
            f"{host} can be reached from elsewhere and {root} has no keys; make one with "
            f"'unbounded keys add {root}', or say --without-keys"
        )
    return keys


def recorded_model(root: Path) -> Path | None:
    """The model that the memories there were made with; None where there are none.

    One of ours is taken where it is found; otherwise the first memory says what to give.
    """
    refused: StoreError | None = None
    for folder in sorted(file.parent for file in root.glob(f"*/{NAME}") if file.is_file()):
        try:
            return recorded(folder, read_about(folder)["model"]["path"])
        except StoreError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        # From here on nobody is turned away: who has read the address may come at once.
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise SettingError(
            f"{host}:{port} cannot be listened at ({why}); choose another --port"
        ) from None
