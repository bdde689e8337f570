"""The cables of some hosts and the switch between them, in a process of its own.

Each cable can be slow, lossy, or pulled: what the kernel's netem does, where there is one. Each
line of the input has the settings of one as JSON.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

_TUNSETIFF, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
MTU = 9000


def plug(name: str) -> int:
    """A network device whose packets are read and written here, wherever it is moved to."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER))
    return end


@dataclass
class Cable:
    """How packets get to and from a host."""

    delay: float = 0.0
    """Seconds."""
    loss: float = 0.0
    """The part that does not arrive."""
    rate: float = 1e9
    """Bytes a second."""
    up: bool = True
    free: float = 0.0
    """When the last packet will be through."""


class Switch:
    """Carries packets between devices until it is closed; host n has an address that ends so."""

    def __init__(self, ends: list[int]) -> None:
        command = [sys.executable, __file__, *map(str, ends)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=ends, text=True)
        for end in ends:
            os.close(end)

    def set(self, host: int, cable: Cable) -> None:
        """Change how packets get to and from a host."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([host, asdict(cable)]) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def carry(ends: list[int]) -> None:
    """Packets from each host to others; those under way to one whose cable is pulled are lost."""
    cables = [Cable() for _ in ends]
    under_way: list[tuple[float, int, int, bytes]] = []
    count = 0
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready = select.select([*ends, 0], [], [], wait)[0]
        # Whole lines, for each is written at once; several may have come.
        for line in os.read(0, 1 << 16).splitlines() if 0 in ready else ():
            host, cable = json.loads(line)
            cables[host - 1] = Cable(**cable)
        now = time.monotonic()
        for sender, end in zip(cables, ends, strict=True):
            for _ in range(64 if end in ready else 0):
                try:
                    packet = os.read(end, MTU + 64)
                except BlockingIOError:
                    break
                except OSError:
                    time.sleep(0.01)  # It is not switched on yet.
                    break
                # IPv4, and the last byte of where it goes.
                to = packet[19] - 1 if packet[0] >> 4 == 4 else -1
                if not 0 <= to < len(ends) or random.random() < sender.loss + cables[to].loss:
                    continue
                sender.free = max(sender.free, now) + len(packet) / sender.rate
                count += 1
                due = sender.free + sender.delay + cables[to].delay
                if sender.up:
                    heapq.heappush(under_way, (due, count, to, packet))
        while under_way and under_way[0][0] <= now:
            _, _, to, packet = heapq.heappop(under_way)
            if cables[to].up:
                try:
                    os.write(ends[to], packet)
                except OSError:
                    continue  # Its queue is full: lost, as in any switch.


if __name__ == "__main__":
    carry([*map(int, sys.argv[1:])])
