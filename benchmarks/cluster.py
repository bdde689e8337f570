"""What a memory costs on shards, beside the same memory in this process, in one run."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.scale import share_of
from unbounded import _native
from unbounded.cluster.connecting import scratch
from unbounded.cluster.sharded import BATCH
from unbounded.corpus import Line, read_sentences
from unbounded.datastore import Auto, Datastore, Votes
from unbounded.datastore.auto import CANDIDATES
from unbounded.lm import Pretrained
from unbounded.presets import MemoryConfig, recipe_for
from unbounded.types import Hidden, Ids

WIDTH, WORDS = 256, 10_000
CENTERS = 4096
CHUNK = 16_384


def made_up(entries: int, seed: int, width: int = WIDTH) -> Iterator[tuple[Hidden, Ids]]:
    """Clustered keys of length one, and words; chunk by chunk, the same for every memory."""
    centers = np.random.default_rng(0).normal(size=(CENTERS, width)).astype(np.float32)
    for start in range(0, entries, CHUNK):
        rng = np.random.default_rng([seed, start])
        count = min(CHUNK, entries - start)
        keys = centers[rng.integers(CENTERS, size=count)]
        keys += rng.normal(size=(count, width)).astype(np.float32)
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        yield keys, rng.integers(0, WORDS, count)


def bench_cluster(
    engine: str,
    model: Pretrained,
    lines: Iterable[Line],
    entries: int,
    shards: Sequence[int] = (1, 2, 4),
    blocks: Sequence[int] = (64, 256, 1024),
    *,
    words: int = 4096,
    k: int = 1024,
    show: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:
    """Words a second of searching and then adding, by number of shards and block.

    And queries a second for one of the first thousand entries: what the engine itself costs;
    seconds a query of what each shard has to do, in this process; and words a second of `full`.
    """
    width, sentences = model.lm.key_width, read_sentences(lines, model.tokenizer)
    wanted = max(blocks) + words * len(blocks)
    text = [*islice((word for sentence in sentences for word in sentence.words), wanted)]
    # Queries of a full memory while a row is measured: `asked_again` counts some of them.
    queries = max(blocks) + words * len(blocks)
    figures: dict[str, Any] = {"entries": entries, "k": k, "words": words, "queries": queries}
    figures["looked_at"] = CANDIDATES
    figures["rows"] = []

    def measure(name: str, count: int, memory: Datastore, other: Datastore) -> None:
        for keys, ids in made_up(BATCH, seed=1):
            memory.add(keys, ids)
        # Once for nothing: what is fetched the first time is no part of it.
        _asking(memory, max(blocks), max(blocks), 1)
        empty = {block: _asking(memory, block, words, 1) for block in blocks}
        began = time.perf_counter()
        for keys, ids in made_up(entries, seed=2):
            memory.add(keys, ids)
        # Durably, as a memory does.
        memory.state()
        filling = time.perf_counter() - began
        _reading(memory, max(blocks), max(blocks), k, seed=3)
        rates = {block: _reading(memory, block, words, k, seed=4 + block) for block in blocks}
        figures["rows"].append(
            {
                "name": name,
                "shards": count,
                "words_per_second": rates,
                "full_words_per_second": _full(model, other, entries, text, words, blocks),
                "empty_queries_per_second": empty,
                "added_per_second": entries / filling,
                "bytes_per_entry": memory.bytes_per_entry,
                "asked_again": getattr(memory, "asked_again", 0),
            }
        )
        show({**figures, "rows": figures["rows"][-1:]})

    measure("in this process", 0, Auto(WIDTH), Auto(width))
    figures["alone"] = {
        count: _alone(entries // count, share_of(k, count), blocks) for count in shards
    }
    figures["merge"] = max((_merging(4, k) - _merging(1, k)) / 3, 0.0)
    for count in shards:
        address = f"{engine.partition('?')[0]}?shards={count}"
        with (
            scratch(address, "auto", WIDTH) as make,
            scratch(address, "auto", width) as make_other,
        ):
            name = f"{count} shard{'s' if count > 1 else ''}"
            measure(name, count, make(), make_other())
    return figures


def _full(
    model: Pretrained,
    memory: Datastore,
    entries: int,
    text: Sequence[str],
    words: int,
    blocks: Sequence[int],
) -> dict[int, float]:
    """Words a second of all experts, when the unbounded cache has so many entries."""
    for keys, ids in made_up(entries, seed=2, width=model.lm.key_width):
        memory.add(keys, ids)
    online = recipe_for(model, "full").build(model, None, MemoryConfig(), lambda: memory)
    online.read(text[: max(blocks)])
    rates, start = {}, max(blocks)
    for block in blocks:
        began = time.perf_counter()
        for first in range(start, start + words, block):
            online.read(text[first : min(first + block, start + words)])
        rates[block] = words / (time.perf_counter() - began)
        start += words
    return rates


def _alone(entries: int, k: int, blocks: Sequence[int]) -> dict[int, float]:
    """Seconds a query that one shard's part takes in blocks of each size, without any engine."""
    memory = Auto(WIDTH)
    for keys, ids in made_up(entries, seed=2):
        memory.add(keys, ids)
    queries, _ = next(made_up(4096, seed=1))
    took = {}
    for block in (1024, *blocks):
        began = time.perf_counter()
        for start in range(0, len(queries), block):
            memory.unordered(queries[start : start + block], k)
        took[block] = (time.perf_counter() - began) / len(queries)
    return took


def _merging(shards: int, k: int, rows: int = 1024) -> float:
    """Seconds a query that merging the answers of shards takes in the reader."""
    rng = np.random.default_rng(0)
    shape = rows, share_of(k, shards)
    found = {
        shard: (rng.random(shape, np.float32), rng.integers(0, WORDS, shape).astype(np.uint32))
        for shard in range(shards)
    }
    # No recent keys, and as many words as there may be entries.
    none, nobody = np.empty((0, WIDTH), np.float32), np.zeros(rows, np.int64)
    words = np.zeros(WORDS * shards, np.int32)
    here = np.zeros((rows, WIDTH), np.float32), none, nobody, nobody
    took = []
    for _ in range(5):
        began = time.perf_counter()
        _native.merged_score(
            *(*here, k, found, shards, len(words)), *(words, nobody, Votes().settings)
        )
        took.append((time.perf_counter() - began) / rows)
    # On a busy machine others come in between.
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
