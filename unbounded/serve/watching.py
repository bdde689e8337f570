"""How the shards of memories on an engine are, looked at from time to time beside the service."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

from unbounded.cluster import Address, Call, Engine, Shard
from unbounded.cluster.connecting import NAME, described, opened_all
from unbounded.cluster.subprocess_proxy import SubprocessProxy
from unbounded.errors import Unavailable, UnboundedError

EVERY = 10.0
"""Seconds from one look to the next."""

PATIENCE = 20.0


@dataclass(frozen=True)
class ShardFigures:
    """One shard at the last look; zeros if it did not answer."""

    memory: str
    shard: int
    up: bool
    entries: int = 0
    bytes: int = 0
    bytes_in_memory: int = 0


def on_shards(root: Path) -> list[Path]:
    """The memories of a folder that are on shards."""
    return sorted(path.parent for path in root.glob(f"*/{NAME}"))


@final
class Watch:
    """A thread that asks every shard for its figures; the service shows the last it has."""

    def __init__(
        self,
        root: Path,
        address: str,
        say: Callable[[str], None] = lambda line: None,
        every: float = EVERY,
    ) -> None:
        self.latest: list[ShardFigures] = []
        self._root, self._address, self._say, self._every = root, address, say, every
        self._check = partial(Address.parse(address).check, 1.0)
        self._stop = threading.Event()
        self._bridge: Engine | None = None
        self._folders: list[Path] = []
        self._thread = threading.Thread(target=self._go_on, name="shards", daemon=True)

    def start(self) -> None:
        """Look now, and from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(PATIENCE)

    def _go_on(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self.latest = self._look()
                except (UnboundedError, OSError) as error:
                    self._say(str(error))
                self._stop.wait(self._every)
        finally:
            if self._bridge is not None:
                self._bridge.close()

    def _look(self) -> list[ShardFigures]:
        folders = on_shards(self._root)
        counts = [(described(folder) or {"shards": 0})["shards"] for folder in folders]
        if self._bridge is None or folders != self._folders:
            if self._bridge is not None:
                self._bridge.close()
            join = partial(opened_all, folders, self._address)
            self._bridge = SubprocessProxy(join, sum(counts), self._check, PATIENCE)
            self._folders = folders
        places = [(f.name, s) for f, n in zip(folders, counts, strict=True) for s in range(n)]
        return [self._figures(number, *place) for number, place in enumerate(places)]

    def _figures(self, number: int, memory: str, shard: int) -> ShardFigures:
        assert self._bridge is not None
        try:
            if self._bridge.gone() is not None:
                self._bridge.revive(number)
            found = self._bridge.begin(number, Call(Shard.stats))()
        except Unavailable:
            self._bridge.revive(number)
            return ShardFigures(memory, shard, False)
        sizes = found["entries"], found["bytes"], found["bytes_in_memory"]
        return ShardFigures(memory, shard, True, *sizes)
