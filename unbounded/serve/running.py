"""From a folder and a model to a service that listens, until it is told to stop."""

import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import final

import uvicorn

from unbounded.errors import SettingError
from unbounded.lm import Pretrained
from unbounded.serve.app import create_app
from unbounded.serve.guard import LOOPBACK, Guard
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits
from unbounded.serve.observing import Observer, silence_others
from unbounded.store.layout import NAME, read_about


@final
class _Server(uvicorn.Server):
    """Refuses new requests from the moment it is told to stop, while the others end."""

    guard: Guard

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.guard.stopping = True
        self.guard.service.ready = False
        super().handle_exit(sig, frame)


def serve(
    root: Path,
    model: Pretrained,
    *,
    host: str,
    port: int,
    limits: Limits = Limits(),
    threads: int,
    without_keys: bool = False,
    batched: bool = True,
    quiet: bool = False,
    engine: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serve until a signal; what was acknowledged is on disk, and all memories are closed."""
    root.mkdir(parents=True, exist_ok=True)
    keys = chosen_keys(root, host, without_keys=without_keys)
    observer = Observer(quiet=quiet)
    hosts = LOOPBACK if keys is None and is_loopback(host) else None
    app = create_app(
        root,
        model,
        keys=keys,
        limits=limits,
        observer=observer,
        threads=threads,
        batched=batched,
        hosts=hosts,
        engine=engine,
    )
    listening = _listen(host, port)
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(limits.grace),
        h11_max_incomplete_event_size=64 << 10,
        limit_max_requests=None,
    )
    silence_others()
    server = _Server(config)
    server.guard = app
    where = listening.getsockname()
    say(f"http://{host if ':' not in host else f'[{host}]'}:{where[1]}/")
    observer.log("started", port=where[1], keys=keys is not None, threads=threads)
    server.run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def chosen_keys(root: Path, host: str, *, without_keys: bool) -> Keys | None:
    """The keys, or None where there are none on loopback or somebody insists on none."""
    keys = Keys(root)
    if without_keys:
        return None
    if keys.all() or keys.path.exists():
        return keys
    if is_loopback(host):
        return None
    raise SettingError(
        f"{host} can be reached from elsewhere and {root} has no keys; make one with "
        f"'unbounded keys add {root}', or say --without-keys"
    )


def recorded_model(root: Path) -> Path | None:
    """The folder of the model that the memories there were made with, if they say."""
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if (folder / NAME).is_file():
            where = read_about(folder)["model"]["path"]
            if where is not None and Path(where).exists():
                return Path(where)
    return None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingError(
            f"{host}:{port} cannot be listened at ({error.strerror}); choose another --port"
        ) from None
    return listening
