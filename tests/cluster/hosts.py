"""Hosts on this machine: network namespaces with cables that can be slow, lossy, or pulled."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cables import MTU, Cable, Switch, plug
from tests.cluster.nodes import SYSTEM

PORT = 6379


@dataclass(frozen=True)
class Host:
    """A namespace with an address of its own."""

    name: str
    number: int
    address: str
    scratch: Path
    switch: Switch

    def command(self, *words: object) -> list[str]:
        """A command that is run there."""
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words: object, **more: str) -> str:
        """Run it with more in its environment, and wait; what it printed."""
        ran = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **more},
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def start_node(self, head: "Host | None" = None, **more: str) -> None:
        """Start a node of Ray as docs/cluster.md does, the head if there is none yet."""
        words = ["--num-cpus", 1, "--object-store-memory", 100_000_000, "--disable-usage-stats"]
        words += ["--node-ip-address", self.address]
        if head is None:
            words += ["--head", "--port", PORT, "--include-dashboard", "false"]
            words += ["--temp-dir", self.scratch]
        else:
            words += ["--address", f"{head.address}:{PORT}"]
        more |= {f"RAY_{name}": str(value) for name, value in SYSTEM.items()}
        self.run(sys.executable, "-m", "ray.scripts.scripts", "start", *words, **more)

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

    def cable(self, **how: float) -> None:
        """Have its cable slow, lossy, pulled (`up=False`), or as at first."""
        self.switch.set(self.number, Cable(**how))  # type: ignore[arg-type]


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


def why_not() -> str | None:
    """Why there can be no hosts here; None if there can."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "network namespaces need Linux and iproute2"
    if not os.access("/dev/net/tun", os.W_OK):
        return "cables between hosts need /dev/net/tun, and root"
    name = f"unbounded-{os.getpid()}"
    if not _ip("netns", "add", name):
        return "network namespaces need root"
    _ip("netns", "del", name)
    return None


@contextmanager
def some_hosts(count: int) -> Iterator[list[Host]]:
    """So many, each with a cable to one switch."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        name, net = f"unbounded-{os.getpid()}", f"10.203.{os.getpid() % 200}"
        devices = [f"ub{os.getpid()}-{n}" for n in range(1, count + 1)]
        switch = Switch([plug(device) for device in devices])
        hosts = [
            Host(f"{name}-{n}", n, f"{net}.{n}", Path(folder), switch) for n in range(1, count + 1)
        ]
        try:
            for host, device in zip(hosts, devices, strict=True):
                assert _ip("netns", "add", host.name)
                assert _ip("link", "set", device, "netns", host.name, "name", "cable")
                host.run("ip", "link", "set", "lo", "up")
                host.run("ip", "address", "add", f"{host.address}/24", "dev", "cable")
                host.run("ip", "link", "set", "cable", "mtu", MTU, "up")
            yield hosts
        finally:
            for host in hosts:
                host.kill()
                _ip("netns", "del", host.name)
            switch.close()
