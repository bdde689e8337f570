"""What a memory costs on shards, beside the same memory in this process, in one run."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.scale import share_of
from unbounded.cluster.connecting import scratch
from unbounded.cluster.messages import Merged
from unbounded.corpus import Vocabulary
from unbounded.datastore import Auto, Datastore, Votes
from unbounded.datastore.auto import CANDIDATES
from unbounded.types import Hidden, Ids

WIDTH, WORDS = 256, 10_000
CENTERS = 4096
CHUNK = 16_384


def made_up(entries: int, seed: int) -> Iterator[tuple[Hidden, Ids]]:
    """Clustered keys of length one, and words; chunk by chunk, the same for every memory."""
    centers = np.random.default_rng(0).normal(size=(CENTERS, WIDTH)).astype(np.float32)
    for start in range(0, entries, CHUNK):
        rng = np.random.default_rng([seed, start])
        count = min(CHUNK, entries - start)
        keys = centers[rng.integers(CENTERS, size=count)]
        keys += rng.normal(size=(count, WIDTH)).astype(np.float32)
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        yield keys, rng.integers(0, WORDS, count)


def bench_cluster(
    engine: str,
    entries: int,
    shards: Sequence[int] = (1, 2, 4),
    blocks: Sequence[int] = (64, 256, 1024),
    *,
    words: int = 4096,
    k: int = 1024,
    show: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:
    """Words a second of searching and then adding, by number of shards and block.

    And queries a second while there is nothing to find: what the engine itself costs; and seconds
    a query of what each shard has to do, in this process.
    """
    vocabulary = Vocabulary(f"w{i}" for i in range(WORDS))
    # Queries of a full memory while a row is measured: `asked_again` counts some of them.
    queries = max(blocks) + words * len(blocks)
    figures: dict[str, Any] = {"entries": entries, "k": k, "words": words, "queries": queries}
    figures["looked_at"] = CANDIDATES
    figures["rows"] = []

    def measure(name: str, count: int, memory: Datastore) -> None:
        # Once for nothing: what is compiled or fetched the first time is no part of it.
        _asking(memory, max(blocks), max(blocks), k)
        empty = {block: _asking(memory, block, words, k) for block in blocks}
        began = time.perf_counter()
        for keys, ids in made_up(entries, seed=2):
            memory.add(keys, ids)
        if (flush := getattr(memory, "flush", None)) is not None:
            flush()
        filling = time.perf_counter() - began
        _reading(memory, max(blocks), max(blocks), k, seed=3)
        full = {block: _reading(memory, block, words, k, seed=4 + block) for block in blocks}
        figures["rows"].append(
            {
                "name": name,
                "shards": count,
                "words_per_second": full,
                "empty_queries_per_second": empty,
                "added_per_second": entries / filling,
                "bytes_per_entry": memory.bytes_per_entry,
                "asked_again": getattr(memory, "asked_again", 0),
            }
        )
        show({**figures, "rows": figures["rows"][-1:]})

    measure("in this process", 0, Auto(WIDTH))
    figures["alone"] = {count: _alone(entries // count, share_of(k, count)) for count in shards}
    figures["merge"] = max((_merging(4, k) - _merging(1, k)) / 3, 0.0)
    for count in shards:
        with scratch(f"{engine.partition('?')[0]}?shards={count}", "auto", WIDTH) as make:
            measure(f"{count} shard{'s' if count > 1 else ''}", count, make(vocabulary))
    return figures


def _alone(entries: int, k: int) -> float:
    """Seconds a query that searching takes in one shard's part, without any engine."""
    memory = Auto(WIDTH)
    for keys, ids in made_up(entries, seed=2):
        memory.add(keys, ids)
    _asking(memory, 1024, 1024, k)
    return 1 / _asking(memory, 1024, 4096, k)


def _merging(shards: int, k: int, rows: int = 1024) -> float:
    """Seconds a query that merging the answers of shards takes in the reader."""
    rng, words = np.random.default_rng(0), np.arange(WORDS)
    shape = rows, share_of(k, shards)
    squared = np.sort(rng.random((shards, *shape), np.float32))
    places = rng.integers(0, WORDS, shape).astype(np.uint32)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        for first in range(0, rows, 64):
            some = slice(first, first + 64)
            merged = Merged(64, k)
            for shard in range(shards):
                found = squared[shard, some], places[some], places[some]
                merged.merge(*found, words, shards, shard)
        took.append((time.perf_counter() - began) / rows)
    # The first time it is compiled, and on a busy machine others come in between.
    return min(took)


def _reading(memory: Datastore, block: int, words: int, k: int, seed: int) -> float:
    """Words a second."""
    keys, ids = next(made_up(words, seed))
    began = time.perf_counter()
    for start in range(0, len(keys), block):
        rows = slice(start, start + block)
        memory.score(keys[rows], ids[rows], k, Votes())
    return len(keys) / (time.perf_counter() - began)


def _asking(memory: Datastore, block: int, queries: int, k: int) -> float:
    """Queries a second."""
    keys, _ = next(made_up(queries, seed=1))
    began = time.perf_counter()
    for start in range(0, len(keys), block):
        memory.search(keys[start : start + block], k)
    return len(keys) / (time.perf_counter() - began)
