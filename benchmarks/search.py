"""How fast each index answers, how well and in how much memory, on real states, in one run.

Queries are the states that follow the entries; contestants take turns block by block. `ratio`
compares with stock faiss, `recall` with exact search, and `filled` is the share of the neighbors
asked for that came back. Times are wall clock, medians of blocks.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.read import Keep, nothing_kept
from benchmarks.states import Scratch, Watched, check_marks, full_size, words_of
from benchmarks.stock import CODE_SIZE, Stock, lists_for
from unbounded.corpus import Line
from unbounded.datastore import IVFPQ, Auto, Flat, Local
from unbounded.experts.cache import unit_length
from unbounded.lm import Pretrained
from unbounded.types import Hidden, Positions

QUERIES = 2_048
RECALLED = 200
"""How many of the queries are also searched exactly."""

FLAT_UP_TO = 100_000
"""Exact search of more entries would take too much memory and time to be worth showing."""

BLOCK = 512


def bench_search(
    model: Pretrained,
    text: Iterable[Line],
    marks: Sequence[int],
    *,
    k: int = 1024,
    progress: Callable[[int], Callable[[int, str], None]] = lambda total: lambda done, note: None,
    keep: Keep = nothing_kept,
) -> dict[str, Any]:
    """The figures of every index at every mark; `keep` is told each mark as it is reached."""
    marks = sorted(set(marks))
    check_marks(marks, [0] * len(marks))
    needed = marks[-1] + QUERIES
    full_size(model, text, needed)
    show = progress(needed)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="unbounded-bench-") as name:
        scratch = Scratch(Path(name), model.lm.width)
        _read(model, text, needed, scratch, show)
        indexes = _indexes(scratch, marks[-1])
        for mark in marks:
            if mark > FLAT_UP_TO:
                indexes.pop("flat", None)
            figures = found[str(mark)] = _measure(indexes, scratch, mark, k)
            keep(mark, figures, done=True)
    return found


def exact(keys: Iterable[np.ndarray], queries: Hidden, k: int) -> Positions:
    """The positions of the k nearest of all keys, chunk by chunk.

    >>> exact([np.array([[0.0]]), np.array([[2.0], [3.0]])], np.array([[2.4]]), k=2).tolist()
    [[1, 2]]
    """
    squared = np.empty((len(queries), 0), np.float32)
    positions = np.empty((len(queries), 0), np.int64)
    seen = 0
    for chunk in keys:
        # Without the queries' own norms, which change no order.
        there = (chunk**2).sum(axis=1) - 2 * (queries @ chunk.T)
        squared = np.hstack([squared, there])
        numbers = np.broadcast_to(seen + np.arange(len(chunk)), there.shape)
        positions = np.hstack([positions, numbers])
        best = np.argsort(squared, axis=1, kind="stable")[:, :k]
        squared = np.take_along_axis(squared, best, axis=1)
        positions = np.take_along_axis(positions, best, axis=1)
        seen += len(chunk)
    return positions


def _read(
    model: Pretrained,
    text: Iterable[Line],
    count: int,
    scratch: Scratch,
    show: Callable[[int, str], None],
) -> None:
    vocabulary, words = model.vocabulary.copy(), islice(words_of(model, text), count)
    lm, done = Watched(model.lm), 0
    while some := list(islice(words, BLOCK)):
        ids = vocabulary.encode(some)
        lm.advance(lm.state, ids)
        scratch.append(unit_length(lm.hidden), ids)
        done += len(ids)
        show(done, "")


def _indexes(scratch: Scratch, most: int) -> dict[str, Local | Stock]:
    """Empty ones; only stock must be trained beforehand."""
    width, lists = scratch.keys(0, 1).shape[1], lists_for(most)
    sample = scratch.keys(0, min(most, 39 * lists))
    # The paper's 4,096 lists, unless the text is too short to train them.
    paper = IVFPQ(width, lists, min(8, lists), math.gcd(CODE_SIZE, width))
    return {"auto": Auto(width), "ivfpq": paper, "flat": Flat(width), "stock": Stock(sample)}


def _measure(
    indexes: Mapping[str, Local | Stock], scratch: Scratch, mark: int, k: int
) -> dict[str, Any]:
    queries = scratch.keys(mark, mark + QUERIES)
    truth = exact(scratch.chunks(0, mark), queries[:RECALLED], k)
    figures: dict[str, dict[str, Any]] = {}
    for name, index in indexes.items():
        before, began = len(index), time.perf_counter()
        for keys in scratch.chunks(before, mark):
            for start in range(0, len(keys), BLOCK):
                some = keys[start : start + BLOCK]
                if isinstance(index, Stock):
                    index.add(some)
                else:
                    index.add(some, np.zeros(len(some), np.int64))
        adding = time.perf_counter() - began
        figures[name] = {"adds_per_second": (mark - before) / adding}
        index.search(queries[:BLOCK], k)
    times: dict[str, list[float]] = {name: [] for name in indexes}
    found: dict[str, list[Positions]] = {name: [] for name in indexes}
    for start in range(0, QUERIES, BLOCK):
        block = queries[start : start + BLOCK]
        for name, index in indexes.items():
            began = time.perf_counter()
            neighbors = index.search(block, k)
            times[name].append((time.perf_counter() - began) / len(block))
            found[name].append(
                neighbors[1] if isinstance(neighbors, tuple) else neighbors.positions
            )
    stock = float(np.median(times["stock"]))
    for name, index in indexes.items():
        positions, seconds = np.concatenate(found[name]), float(np.median(times[name]))
        pairs = zip(truth, positions[:RECALLED], strict=True)
        figures[name] |= {
            "queries_per_second": 1 / seconds,
            "ratio": stock / seconds,
            "recall": sum(len(np.intersect1d(a, b)) for a, b in pairs) / truth.size,
            "filled": float((positions >= 0).sum()) / (QUERIES * min(k, mark)),
            "bytes_per_entry": index.bytes / mark,
            "events": [str(event) for event in index.events],
        }
    return figures
