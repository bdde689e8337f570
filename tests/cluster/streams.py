"""Streams and memories that the tests of clusters share."""

from pathlib import Path
from typing import Any

import numpy as np

from unbounded.cluster import Here, Shard, Sharded
from unbounded.corpus import Vocabulary
from unbounded.types import Hidden, Ids

WIDTH = 6
WORDS = [f"w{i}" for i in range(9)]


def about(index: str = "flat", exact: int | None = None) -> dict[str, Any]:
    return {"width": WIDTH, "index": index, "exact": exact, "model": "toy"}


def stream(count: int, seed: int = 0) -> tuple[Hidden, Ids]:
    """Clustered keys; one in five is an earlier one again, at exactly the same distance."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(count, WIDTH)).astype(np.float32)
    again = np.flatnonzero(rng.random(count) < 0.2)
    keys[again] = keys[(again * rng.random(len(again))).astype(int)]
    return keys, rng.integers(0, 9, count)


def vocabulary() -> Vocabulary:
    return Vocabulary(WORDS)


def here(folder: Path, shards: int, **described: Any) -> Here:
    every = [Shard(str(folder / f"shard-{i}"), about(**described)) for i in range(shards)]
    return Here(every)


def spread(folder: Path, shards: int, batch: int = 16, **described: Any) -> Sharded:
    engine = here(folder, shards, **described)
    return Sharded(engine, vocabulary(), WIDTH, batch=batch)
