"""What the service says of itself: metrics for Prometheus, a line of JSON a request. No texts."""

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from unbounded.cluster import Address, Call, Engine, Shard
from unbounded.cluster.connecting import NAME, described, opened_all
from unbounded.cluster.subprocess_proxy import SubprocessProxy
from unbounded.errors import Unavailable, UnboundedError

WATCH_EVERY = 10.0
"""Seconds between two looks at the shards."""

SHARD_TIMEOUT = 20.0

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

SHARDS = {
    "up": "Whether a shard answered at the last look",
    "entries": "Entries of a shard",
    "bytes": "Bytes of a shard on disk",
    "bytes_in_memory": "Bytes of a shard's index in memory",
}


@final
class Observer:
    """Metrics and log; knows routes and names of memories, never what anybody wrote."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        self.requests = counter(
            "unbounded_requests_total", "Requests", ["method", "route", "status"]
        )
        self.seconds = Histogram(
            "unbounded_request_seconds",
            "Until the last byte",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.words = counter("unbounded_words_total", "Words", ["what"])
        self.under_way = gauge("unbounded_requests_under_way", "Requests now")
        self.open = gauge("unbounded_open_memories", "Memories that are open")
        self.entries = gauge("unbounded_entries", "Entries of all that are open")
        self.queue = gauge("unbounded_waiting_work", "Pieces of work that wait")
        self._shards = {
            what: gauge(f"unbounded_shard_{what}", text, ["memory", "shard"])
            for what, text in SHARDS.items()
        }

    def show_shards(self, figures: "Sequence[ShardFigures]") -> None:
        """What the shards were like at the last look."""
        for what, gauge in self._shards.items():
            gauge.clear()
            for each in figures:
                gauge.labels(each.memory, each.shard).set(getattr(each, what))

    def log(self, event: str, **more: Any) -> None:
        """One line of JSON on standard error; where nobody takes it, the service goes on."""
        if not (self._quiet and event == "request"):
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            with suppress(OSError, ValueError):
                sys.stderr.write(json.dumps({"time": now, "event": event, **more}) + "\n")
                sys.stderr.flush()

    def failed(self, error: BaseException, **more: Any) -> None:
        """Where an error came from; what it says is left out, for it may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        self.log("failed", error=type(error).__name__, where=where, **more)


def silence_others() -> None:
    """The server's own lines are not JSON; requests are told by ours."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).handlers = [logging.NullHandler()]
        logging.getLogger(name).propagate = False


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
class ShardWatcher:
    """A thread that asks every shard for its figures; the service shows the last it has."""

    def __init__(
        self,
        root: Path,
        address: str,
        say: Callable[[str], None] = lambda line: None,
        every: float = WATCH_EVERY,
    ) -> None:
        self.latest: list[ShardFigures] = []
        self._root, self._address, self._say, self._every = root, address, say, every
        self._check = partial(Address.parse(address).check, 1.0)
        self._stop = threading.Event()
        self._proxy: Engine | None = None
        self._folders: list[Path] = []
        self._thread = threading.Thread(target=self._run, name="shards", daemon=True)

    def start(self) -> None:
        """Look now, and from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(SHARD_TIMEOUT)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self.latest = self._poll()
                except (UnboundedError, OSError) as error:
                    self._say(str(error))
                self._stop.wait(self._every)
        finally:
            if self._proxy is not None:
                self._proxy.close()

    def _poll(self) -> list[ShardFigures]:
        folders = on_shards(self._root)
        counts = [(described(folder) or {"shards": 0})["shards"] for folder in folders]
        if self._proxy is None or folders != self._folders:
            if self._proxy is not None:
                self._proxy.close()
            join = partial(opened_all, folders, self._address)
            self._proxy = SubprocessProxy(join, sum(counts), self._check, SHARD_TIMEOUT)
            self._folders = folders
        shards = [(f.name, s) for f, n in zip(folders, counts, strict=True) for s in range(n)]
        return [self._figures(number, *shard) for number, shard in enumerate(shards)]

    def _figures(self, number: int, memory: str, shard: int) -> ShardFigures:
        assert self._proxy is not None
        try:
            if self._proxy.gone() is not None:
                self._proxy.revive(number)
            found = self._proxy.begin(number, Call(Shard.stats))()
        except Unavailable:
            self._proxy.revive(number)
            return ShardFigures(memory, shard, False)
        sizes = found["entries"], found["bytes"], found["bytes_in_memory"]
        return ShardFigures(memory, shard, True, *sizes)
