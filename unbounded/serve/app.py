"""The service put together: routes, errors, life from start to stop."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from unbounded.errors import UnboundedError
from unbounded.lm import Pretrained
from unbounded.serve import chat, openai, page, routes, tokens
from unbounded.serve.keys import Keys
from unbounded.serve.limits import BodyRefused, Limits
from unbounded.serve.observing import Observer, ShardWatcher
from unbounded.serve.refusals import Refused, from_library
from unbounded.serve.registry import Registry
from unbounded.serve.security import Guard
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

    `hosts` are names, beside addresses and 'localhost', that it has where keys are off.
    `engine` is where the shards are of memories that have some: their figures are shown.
    """
    observer = observer or Observer()
    registry = Registry(root, model, limits, observer, threads=threads)
    watcher = None
    if engine is not None:
        watcher = ShardWatcher(root, engine, lambda line: observer.log("shards", said=line))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        registry.start()
        if watcher is not None:
            watcher.start()
        yield
        await registry.stop()
        if watcher is not None:
            await asyncio.to_thread(watcher.stop)
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
    for module in (routes, openai, chat, tokens, page):
        app.include_router(module.router)
    _add_health(app, registry, watcher)
    _add_errors(app, observer)
    return Guard(app, registry, keys, hosts)


def _add_health(app: FastAPI, registry: Registry, watcher: ShardWatcher | None) -> None:
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
        observer, sessions = registry.observer, registry.opened().values()
        observer.open.set(len(sessions))
        observer.entries.set(sum(session.entries for session in sessions))
        observer.queue.set(len(registry.pool))
        if watcher is not None:
            observer.show_shards(watcher.latest)
        return Response(observer.exposition(), media_type="text/plain; version=0.0.4")


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
        if isinstance(error, BodyRefused):
            return answer(error.refused)
        words = {404: "there is nothing here", 405: "not with this method"}
        message = words.get(error.status_code, "the request could not be understood")
        found = Refused(error.status_code, f"http_{error.status_code}", message)
        return JSONResponse(found.body, error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        # The guard tells the log and the user.
        raise error
