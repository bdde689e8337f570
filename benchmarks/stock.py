"""The paper's configuration on faiss as it comes, alone and in a process of its own."""

import math
import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, final

import faiss
import numpy as np

from benchmarks.scratch import Scratch
from unbounded.types import Distances, Hidden, Positions

LISTS, PROBES, CODE_SIZE = 4096, 8, 64
"""The paper's lists and probes; it does not say the bytes of a code."""

KEYS_PER_LIST = 39
"""What faiss asks for; a text too short for that gets fewer lists."""


def lists_for(entries: int) -> int:
    """How many lists so many entries can train."""
    return min(LISTS, max(entries // KEYS_PER_LIST, 1))


@final
class Stock:
    """IndexIVFPQ behind a flat coarse quantizer: 4,096 lists, 8 probes, codes of 64 bytes."""

    def __init__(self, sample: Hidden) -> None:
        began = time.perf_counter()
        width, self.lists = sample.shape[1], lists_for(len(sample))
        flat = faiss.IndexFlatL2(width)
        self._faiss: Any = faiss.IndexIVFPQ(flat, width, self.lists, math.gcd(CODE_SIZE, width), 8)
        # It would only warn.
        self._faiss.cp.min_points_per_centroid = self._faiss.pq.cp.min_points_per_centroid = 1
        self._faiss.train(sample)
        self._faiss.nprobe = min(PROBES, self.lists)
        self.events = [f"{self.lists:,} lists trained in {time.perf_counter() - began:.1f} s"]

    def __len__(self) -> int:
        return int(self._faiss.ntotal)

    @property
    def bytes(self) -> int:
        """Codes and ids, centroids, and the table that faiss makes for speed."""
        index = self._faiss
        codes = index.ntotal * (index.code_size + 8)
        return int(codes + 4 * (index.nlist * index.d + index.precomputed_table.size()))

    def add(self, keys: Hidden) -> None:
        """Append keys."""
        self._faiss.add(keys)

    def search(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """What faiss finds, nearest first; rows that came back short end in position -1."""
        squared, positions = self._faiss.search(queries, k)
        return squared, positions


CONTESTANTS = {
    "PQ128x4fs": "IVF{lists}_HNSW32,PQ128x4fs",
    "PCA128, PQ64x4fs": "PCA128,IVF{lists}_HNSW32,PQ64x4fs",
    "RaBitQfs": "RR{width},IVF{lists}_HNSW32,RaBitQfs",
    "RaBitQfs4": "RR{width},IVF{lists}_HNSW32,RaBitQfs4",
}
"""The strongest that faiss has, by the names of its factory; all are filled from the same keys."""

CONTEST_PROBES = (8, 16, 32)

MANY_LISTS = 16_384
"""As many are tried too where there are this many times 39 keys to train them, ten million."""


def contestants(entries: int, width: int) -> dict[str, tuple[str, int]]:
    """Names, factory strings and lists of what is tried at so many entries."""
    lists = {"": lists_for(entries)}
    if entries >= 10_000_000:
        lists[f" {MANY_LISTS:,} lists"] = MANY_LISTS
    return {
        f"{name}{more}": (spec.format(lists=count, width=width), count)
        for name, spec in CONTESTANTS.items()
        for more, count in lists.items()
        if width >= 128
    }


_theirs: dict[str, Any] = {}
"""What the other process holds between two calls."""


def _begin(threads: int, folder: Path, width: int) -> None:
    # Whoever stops us stops it too, without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faiss.omp_set_num_threads(threads)
    _theirs["scratch"] = Scratch(folder, width)


def _fill(entries: int) -> float:
    began = time.perf_counter()
    scratch, stock = _theirs["scratch"], _theirs.get("stock")
    lists = lists_for(entries)
    if stock is None or stock.lists < lists:
        _theirs.pop("stock", None)
        stock = _theirs["stock"] = Stock(scratch.keys(0, lists * KEYS_PER_LIST))
    for keys in scratch.chunks(len(stock), entries):
        stock.add(keys)
    _theirs["words"] = scratch.words(entries)
    return time.perf_counter() - began


def _ask(queries: Hidden, k: int) -> tuple[float, Distances, Positions]:
    began = time.perf_counter()
    squared, positions = _theirs["stock"].search(queries, k)
    seconds = time.perf_counter() - began
    missing = positions < 0
    squared[missing] = np.inf
    return seconds, squared, np.where(missing, -1, _theirs["words"][positions])


def _contest(spec: str, lists: int, entries: int) -> float:
    """Make, train and fill another index, instead of the one before; seconds of it all."""
    began = time.perf_counter()
    scratch = _theirs["scratch"]
    _theirs.pop("contestant", None)
    sample = scratch.keys(0, min(entries, KEYS_PER_LIST * lists))
    index = faiss.index_factory(sample.shape[1], spec)
    index.train(sample)
    for keys in scratch.chunks(0, entries):
        index.add(keys)
    _theirs["contestant"] = index
    return time.perf_counter() - began


def _ask_contestant(queries: Hidden, k: int, probes: int) -> tuple[float, Distances, Positions]:
    index = _theirs["contestant"]
    inverted: Any = faiss.downcast_index(faiss.extract_index_ivf(index))
    inverted.nprobe = probes
    if "RaBitQ" in type(inverted).__name__:
        inverted.qb = 8
    began = time.perf_counter()
    squared, positions = index.search(queries, k)
    seconds = time.perf_counter() - began
    missing = positions < 0
    squared[missing] = np.inf
    return seconds, squared, np.where(missing, -1, _theirs["words"][positions])


@final
class StockProcess:
    """A `Stock` in a process of its own, so that its memory is not counted as ours."""

    def __init__(self, threads: int, folder: Path, width: int) -> None:
        # Not forked: a fork of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin, initargs=(threads, folder, width)
        )

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown(cancel_futures=True)

    def fill(self, entries: int) -> float:
        """Bring it to the first `entries` keys of the scratch files; the seconds that took."""
        return self._pool.submit(_fill, entries).result()

    def search(self, queries: Hidden, k: int) -> tuple[float, Distances, Positions]:
        """The seconds of the search alone, squared distances, and the words found there."""
        return self._pool.submit(_ask, queries, k).result()

    def contest(self, spec: str, lists: int, entries: int) -> float:
        """Fill another index with the first `entries` keys; the seconds that took."""
        return self._pool.submit(_contest, spec, lists, entries).result()

    def search_contestant(
        self, queries: Hidden, k: int, probes: int
    ) -> tuple[float, Distances, Positions]:
        """As `search`, of the contestant that was filled last."""
        return self._pool.submit(_ask_contestant, queries, k, probes).result()
