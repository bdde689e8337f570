"""What the service says of itself: figures for Prometheus, a line of JSON a request. No texts."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from unbounded.serve.watching import ShardFigures

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

SHARDS = {
    "up": "Whether a shard answered at the last look",
    "entries": "Entries of a shard",
    "bytes": "Bytes of a shard on disk",
    "bytes_in_memory": "Bytes of a shard's index in memory",
}


@final
class Observer:
    """Counts and logs; knows routes and names of memories, never what anybody wrote."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.registry = CollectorRegistry()
        self._quiet = quiet
        self.requests = Counter(
            "unbounded_requests_total",
            "Requests",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "unbounded_request_seconds",
            "Until the last byte",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.words = Counter("unbounded_words_total", "Words", ["what"], registry=self.registry)
        self.under_way = Gauge(
            "unbounded_requests_under_way", "Requests now", registry=self.registry
        )
        self.open = Gauge(
            "unbounded_open_memories", "Memories that are open", registry=self.registry
        )
        self.entries = Gauge(
            "unbounded_entries", "Entries of all that are open", registry=self.registry
        )
        self.queue = Gauge(
            "unbounded_waiting_work", "Pieces of work that wait", registry=self.registry
        )
        self.batches = Histogram(
            "unbounded_batch_texts",
            "Texts in a network batch",
            buckets=(1, 2, 4, 8, 16, 32),
            registry=self.registry,
        )

        self._shards = {
            what: Gauge(
                f"unbounded_shard_{what}", text, ["memory", "shard"], registry=self.registry
            )
            for what, text in SHARDS.items()
        }

    def shards(self, figures: Sequence[ShardFigures]) -> None:
        """What the shards were like at the last look."""
        for what, gauge in self._shards.items():
            gauge.clear()
            for each in figures:
                gauge.labels(each.memory, each.shard).set(getattr(each, what))

    def exposition(self) -> bytes:
        """The figures, as Prometheus reads them."""
        return generate_latest(self.registry)

    def log(self, event: str, **more: Any) -> None:
        """One line of JSON on standard error."""
        if not (self._quiet and event == "request"):
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
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
