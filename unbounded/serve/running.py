"""From a folder and a model to a service that listens, until it is told to stop."""

import gc
import ipaddress
import resource
import socket
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import final

import uvicorn

from unbounded.errors import SettingError
from unbounded.lm import Pretrained
from unbounded.memory.opening import recorded
from unbounded.serve.app import create_app
from unbounded.serve.connections import configured
from unbounded.serve.guard import Guard
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
    hosts: Collection[str] = (),
    batched: bool = True,
    quiet: bool = False,
    engine: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serve until a signal; what was acknowledged is on disk, and all memories are closed."""
    root.mkdir(parents=True, exist_ok=True)
    keys = chosen_keys(root, host, without_keys=without_keys)
    if keys is not None and keys.on and not keys.all():
        say(f"no key is left in {root}, so nobody is served: add one, or delete {keys.path}")
    _raise_descriptors()
    observer = Observer(quiet=quiet)
    app = create_app(
        root,
        model,
        keys=keys,
        limits=limits,
        observer=observer,
        threads=threads,
        batched=batched,
        hosts={host, socket.gethostname(), *hosts},
        engine=engine,
    )
    listening = _listen(host, port)
    silence_others()
    server = _Server(configured(app))
    server.guard = app
    where = listening.getsockname()
    say(f"http://{host if ':' not in host else f'[{host}]'}:{where[1]}/")
    observer.log("started", port=where[1], keys=keys is not None and keys.on, threads=threads)
    # What is there by now stays: no need to go through all of it when an answer has many parts.
    gc.freeze()
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


def _raise_descriptors() -> None:
    """Have as many descriptors as the system lets us: a connection is one, a memory a few."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def recorded_model(root: Path) -> Path | None:
    """The folder of the model that the memories there were made with, if they say."""
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if (folder / NAME).is_file():
            where = read_about(folder)["model"]["path"]
            if where is not None and Path(where).exists():
                return recorded(folder, where)
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
