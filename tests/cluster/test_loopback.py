"""`ray://local` is for this machine: nobody else can reach it; it stays as long as its process."""

import subprocess
import sys

import pytest

pytest.importorskip("ray")

CHILD = """
import os
import threading
from pathlib import Path
from unbounded.cluster.engine import Address
from unbounded.cluster.on_ray import connect, disconnect, ray_module

# In a thread that ends, as a service may: the cluster does not end with it.
thread = threading.Thread(target=connect, args=[Address.parse("ray://local")])
thread.start()
thread.join()
ray = ray_module()
ray.get(ray.remote(lambda: 1).remote())

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def ours(pid):
    while pid > 1 and pid != os.getpid():
        pid = parent(pid)
    return pid == os.getpid()

sockets = set()
for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    try:
        if ours(pid):
            sockets |= {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        continue
for family in ("tcp", "tcp6"):
    for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
        _, local, _, state, *rest = line.split()
        if state == "0A" and f"socket:[{rest[5]}]" in sockets:
            print(local.split(":")[0])
disconnect()
"""

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are looked up in /proc")
def test_a_cluster_of_this_process_listens_on_this_machine_only() -> None:
    found = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=200
    )
    addresses = found.stdout.split()
    assert len(addresses) > 3
    assert set(addresses) <= LOOPBACK
