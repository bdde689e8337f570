"""A real Ray cluster of several node processes on this machine."""

import logging
import os
import signal
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from unbounded.cluster.on_ray import NAMESPACE

SYSTEM = {
    # A node that is killed is missed after some seconds, not after half a minute; one that only
    # has to wait for a processor is not.
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 5,
}


@contextmanager
def cluster(nodes: int, *, port: int | None = None, join: bool = True) -> Iterator[Any]:
    """A head and so many nodes; this process joins as a reader does, or does not."""
    # Its address is this machine's, and it has no token.
    known = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    with (
        warnings.catch_warnings(),
        patch.dict(os.environ, known),
        tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder,
    ):
        warnings.simplefilter("ignore")
        # Logs and sockets; it must be known before ray is imported.
        os.environ["RAY_TMPDIR"] = folder
        import ray
        from ray.cluster_utils import Cluster

        common = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
        made = Cluster(
            initialize_head=True,
            head_node_args={
                **common,
                "_system_config": SYSTEM,
                **({} if port is None else {"gcs_server_port": port}),
            },
        )
        try:
            for _ in range(nodes):
                made.add_node(**common)
            made.wait_for_nodes()
            if join:
                ray.init(
                    address=made.address,
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def kill_process(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def node_of(made: Any, pid: int) -> Any:
    """The node on which a process runs: the one whose raylet is its parent."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        parent = int(file.read().rpartition(")")[2].split()[1])
    for node in made.list_all_nodes():
        raylets = node.all_processes.get("raylet", [])
        if any(each.process.pid == parent for each in raylets):
            return node
    raise LookupError(f"no node has process {pid}")


def kill_node(node: Any) -> None:
    """kill -9 of the node's own process, the raylet; its workers notice that they are orphans."""
    for each in node.all_processes["raylet"]:
        os.kill(each.process.pid, signal.SIGKILL)
