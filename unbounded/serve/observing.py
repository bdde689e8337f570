"""What the service says of itself: metrics for Prometheus, a line of JSON a request. No texts."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from unbounded.cluster.sharded_keys import ShardFigures

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

SHARDS = {
    "up": "Whether a shard answered when it was last asked",
    "entries": "Entries of a shard",
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

    def forget_shards(self) -> None:
        """Those of memories that were open."""
        for gauge in self._shards.values():
            gauge.clear()

    def show_shards(self, figures: Mapping[str, Sequence[ShardFigures]]) -> None:
        """The shards of a memory that is open, by its id: whoever sees this may not know names."""
        for what, gauge in self._shards.items():
            for memory, shards in figures.items():
                for number, each in enumerate(shards):
                    gauge.labels(memory, number).set(getattr(each, what))

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
