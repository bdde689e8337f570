"""Streams and datastores that the tests of shards share; the shards are in this process."""

from pathlib import Path
from typing import Any

import numpy as np

from unbounded.cluster import Here, Shard, Sharded, Way
from unbounded.types import Hidden, Ids

WIDTH = 6


def stream(count: int, seed: int = 0) -> tuple[Hidden, Ids]:
    """Clustered keys; one in five is an earlier one again, at exactly the same distance."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(count, WIDTH)).astype(np.float32)
    again = np.flatnonzero(rng.random(count) < 0.2)
    keys[again] = keys[(again * rng.random(len(again))).astype(int)]
    return keys, rng.integers(0, 9, count)


def about(shards: int, index: str = "flat", **more: Any) -> dict[str, Any]:
    known = {"memory": "toy", "model": "toy", "width": WIDTH, "index": index, "shards": shards}
    return {**known, **more}


def shard_in(folder: Path, number: int, shards: int, **described: Any) -> Shard:
    return Shard(str(folder / f"{number:04}"), about(shards, shard=number, **described))


def here(folder: Path, shards: int, way: Way = Way(), **described: Any) -> Here:
    return Here([shard_in(folder, number, shards, **described) for number in range(shards)], way)


def spread(folder: Path, shards: int, way: Way = Way(), **described: Any) -> Sharded:
    return Sharded(here(folder, shards, way, **described), WIDTH)
