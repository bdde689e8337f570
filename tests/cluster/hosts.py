"""Two hosts on this machine: network namespaces joined by a cable that can be pulled."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 6379


@dataclass(frozen=True)
class Host:
    """A namespace with an address of its own."""

    name: str
    address: str
    scratch: Path

    def command(self, *words: object) -> list[str]:
        """A command that is run there."""
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words: object) -> None:
        """Run it, and wait."""
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def start_node(self, head: "Host | None" = None) -> None:
        """Start a node of Ray, the head if there is none yet."""
        words = ["--num-cpus", 1, "--object-store-memory", 100_000_000, "--disable-usage-stats"]
        words += ["--node-ip-address", self.address]
        if head is None:
            words += ["--head", "--port", PORT, "--include-dashboard", "false"]
            words += ["--temp-dir", self.scratch]
        else:
            words += ["--address", f"{head.address}:{PORT}"]
        self.run(sys.executable, "-m", "ray.scripts.scripts", "start", *words)

    def processes(self) -> list[int]:
        """Everything that runs there."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def kill(self) -> None:
        """kill -9 of everything that runs there."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def cable(self, state: str) -> None:
        """Pull the cable (`down`), or plug it in (`up`)."""
        self.run("ip", "link", "set", "cable", state)


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


def why_not() -> str | None:
    """Why there can be no hosts here; None if there can."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "network namespaces need Linux and iproute2"
    name = f"unbounded-{os.getpid()}"
    if not _ip("netns", "add", name):
        return "network namespaces need root"
    _ip("netns", "del", name)
    return None


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Both with a node of one cluster; the first has the head."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        net = os.getpid() % 200
        hosts = [
            Host(f"unbounded-{os.getpid()}-{n}", f"10.203.{net}.{n}", Path(folder)) for n in (1, 2)
        ]
        try:
            for host in hosts:
                assert _ip("netns", "add", host.name)
                host.run("ip", "link", "set", "lo", "up")
            ends = ["cable", "netns", hosts[0].name, "type", "veth", "peer", "name", "cable"]
            assert _ip("link", "add", *ends, "netns", hosts[1].name)
            for host in hosts:
                host.run("ip", "address", "add", f"{host.address}/24", "dev", "cable")
                host.cable("up")
            hosts[0].start_node()
            hosts[1].start_node(hosts[0])
            # Ray passes over a node that is not ready yet.
            time.sleep(5)
            yield hosts[0], hosts[1]
        finally:
            for host in hosts:
                host.kill()
                _ip("netns", "del", host.name)
