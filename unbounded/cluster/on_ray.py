"""Shards as actors of a Ray cluster: started with the memory, started again when they die."""

import atexit
import logging
import os
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, final

from unbounded.cluster.engine import Address, Call, Engine, Pending, T, Way, failing
from unbounded.cluster.shard import Shard
from unbounded.errors import EngineError, Unavailable, UnboundedError, needing

NAMESPACE = "unbounded"

STORE_BYTES = 200_000_000
"""What `ray://local` may take for arrays on their way; a block's answers are a few megabytes."""

INLINE = 100_000
"""Bytes below which Ray sends an array with the call: to share it takes longer."""

_joined: str | None = None
"""What this process has joined, if it was we who did it."""


def connect(address: Address) -> None:
    """Join the cluster, or start one of this process alone; joined already is joined."""
    global _joined
    ray = ray_module()
    if ray.is_initialized():
        if _joined not in (None, str(address)):
            raise EngineError(
                f"this process has joined {_joined}, and cannot join {address} too; use another "
                "process for it"
            )
        return
    address.check()
    # No figures to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would end this process, without a word of ours, when the head is unavailable for a minute.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # It would say between our lines, on standard output, that a node is lost: so do we, elsewhere.
    ray._private.worker.print_worker_logs = lambda *given: None
    if address.host is not None:
        _show_token(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "namespace": NAMESPACE}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if address.host is None:
                # Sockets lie in there, and a socket's path must be short.
                place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
                start = partial(
                    ray.init,
                    address="local",
                    include_dashboard=False,
                    object_store_memory=STORE_BYTES,
                    _temp_dir=place,
                    **quiet,
                )
                with _loopback():
                    _in_a_thread_that_stays(start)
                atexit.register(_end, place)
            else:
                ray.init(address=f"{address.host}:{address.port}", **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise Unavailable(
            f"{address} cannot be joined ({' '.join(str(error).split())[:200]}); is this machine a "
            f"node of it? 'ray start --address {address.host}:{address.port}' makes it one"
        ) from error
    _joined = str(address)


def _in_a_thread_that_stays(start: Callable[[], object]) -> None:
    """Start a node of this process: Linux ends it with the thread that started it.

    So that must not be one of a pool, as a service has them, which end before the process does.
    """
    if threading.current_thread() is threading.main_thread():
        start()
        return
    started: Future[object] = Future()

    def run() -> None:
        try:
            started.set_result(start())
        except BaseException as error:
            started.set_exception(error)
        else:
            threading.Event().wait()

    threading.Thread(target=run, name="node", daemon=True).start()
    started.result()


@contextmanager
def _loopback() -> Iterator[None]:
    """Let a cluster of this process listen on 127.0.0.1, as Ray does where it knows no others."""
    from ray._private import ray_constants

    before, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _show_token(address: Address) -> None:
    """Join with this user's token; refuse a cluster without one, unless told not to."""
    with suppress(ImportError, AttributeError):
        from ray._private.authentication import authentication_token_setup as tokens

        # To show one where none is wanted is as bad: the cluster would be refused by us.
        if not _wants_token(address):
            if not address.loopback and tokens.AUTH_MODE_ENV_VAR not in os.environ:
                raise EngineError(
                    f"{address} has no token: whoever can reach it can run programs on it; make "
                    "one there with 'ray get-auth-token --generate' and start it again, or set "
                    "RAY_AUTH_MODE=disabled here if its network is your own"
                )
            return
        shown = tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        if not shown or _wants_token(address):
            raise EngineError(
                f"{address} wants {'another' if shown else 'a'} token; copy the file "
                "~/.ray/auth_token of the machine of its head to this one"
            )


def _wants_token(address: Address) -> bool:
    """Whether the cluster refuses us for want of a token."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.exceptions import AuthenticationError

    try:
        with _silence():
            GcsClient(address=f"{address.host}:{address.port}")
    except AuthenticationError:
        return True
    except Exception:
        # Joining will say what is wrong.
        return False
    return False


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what is written below Python from the terminal."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def disconnect() -> None:
    """Leave the cluster; `ray://local` ends with it."""
    ray_module().shutdown()


def _end(place: str) -> None:
    """End a cluster of this process, and remove its logs and sockets."""
    disconnect()
    shutil.rmtree(place, ignore_errors=True)


def ray_module() -> Any:
    """The package, or one line that says how to get it."""
    what = "ray, which spreads a memory over machines,"
    with needing(what, "cluster"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
    return ray


@final
class OnRay(Engine):
    """The shards of one memory that this process opened; they end with it.

    Ray starts a shard again when it or its node dies; its folder has to be there too: on shared
    storage anywhere, otherwise on the node that had it.
    """

    def __init__(
        self, places: Sequence[tuple[str, Mapping[str, Any]]], way: Way, *, threads: int
    ) -> None:
        super().__init__(len(places), way)
        self._places, self._threads = places, threads
        self._looked = 0.0
        self._ray = ray_module()
        self._shards = [self._start(shard) for shard in range(self.count)]

    def _start(self, shard: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actor = self._ray.remote(Shard).options(
                max_restarts=-1,
                # We ask again ourselves: what a call left undone must come before it.
                max_task_retries=0,
                num_cpus=0,
                scheduling_strategy=self._node(shard),
            )
            return actor.remote(*self._places[shard], self._threads)

    def _node(self, shard: int) -> Any:
        """The node for a shard, in turn and by address.

        Ray's own "SPREAD" puts actors that claim no processor on one node, as it was seen to do,
        and a soft wish is passed over while a node has just been started.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = [node for node in self._ray.nodes() if node["Alive"]]
        alive.sort(key=lambda node: (node["NodeManagerAddress"], node["NodeManagerPort"]))
        return NodeAffinitySchedulingStrategy(alive[shard % len(alive)]["NodeID"], soft=False)

    def share(self, array: Any) -> Any:
        """A reference into the engine's shared memory, or what is small as it is."""
        self._check_node()
        return array if array.nbytes < INLINE else self._ray.put(array)

    def _check_node(self) -> None:
        """Refuse to put an array where no node is any more: Ray would end this process."""
        if time.monotonic() < self._looked + 1:
            return
        self._looked = time.monotonic()
        path = self._ray._private.worker._global_node.raylet_socket_name
        with socket.socket(socket.AF_UNIX) as node:
            try:
                node.connect(path)
            except OSError:
                raise EngineError(
                    "the node of this machine has ended; the journal has all that was "
                    "acknowledged: start it again with 'ray start' and open the memory again"
                ) from None

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Send the call."""
        method = getattr(self._shards[shard], call.name)
        try:
            answer = method.remote(*call.args)
        except self._ray.exceptions.RayActorError as error:
            return failing(Unavailable(str(error)))
        patience = self.way.patience if call.quick else None
        return lambda: self._get(shard, answer, patience)

    def _get(self, shard: int, answer: Any, patience: float | None) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(answer, timeout=patience)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, UnboundedError):
                raise cause from None
            if isinstance(cause, errors.ObjectLostError):
                raise Unavailable(f"what shard {shard} was asked was lost on its way") from error
            raise EngineError(
                f"shard {shard} ({self._places[shard][0]}) failed ({cause!r}); look at its folder "
                "and at the engine's logs"
            ) from error
        except errors.GetTimeoutError as error:
            raise Unavailable(f"shard {shard} is slow: no answer in {patience} s") from error
        except (errors.ActorDiedError, errors.ActorUnschedulableError) as error:
            # Ray has given it up, or its node is lost: it goes to one that is there.
            self._shards[shard] = self._start(shard)
            raise Unavailable(f"shard {shard} has ended ({error})") from error
        except errors.RayError as error:
            raise Unavailable(f"shard {shard} does not answer ({error})") from error

    def answers(self, shard: int) -> bool:
        """Ask, and wait a moment."""
        try:
            call = self._shards[shard].drop.remote([])
            return (
                bool(self._ray.wait([call], timeout=3.0)[0]) and self._get(shard, call, 5.0) is None
            )
        except (Unavailable, self._ray.exceptions.RayActorError):
            return False

    def close(self) -> None:
        """End them."""
        for actor in self._shards:
            with suppress(Exception):  # Whatever Ray says of what has ended already.
                self._ray.kill(actor)
