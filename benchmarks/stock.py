"""Faiss as it comes: the paper's configuration, and its strongest, in a process of their own."""

import math
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any, final

import faiss
import numpy as np

from benchmarks.states import Scratch
from unbounded.errors import SettingError
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
    "PCA128-PQ64x4fs": "PCA128,IVF{lists}_HNSW32,PQ64x4fs",
    "RaBitQfs": "RR{width},IVF{lists}_HNSW32,RaBitQfs",
    "RaBitQfs4": "RR{width},IVF{lists}_HNSW32,RaBitQfs4",
}
"""The strongest that faiss has, by the names of its factory; all are filled from the same keys."""

CONTEST_PROBES = (8, 16, 32)

MANY_LISTS, MANY_ENTRIES = 16_384, 5_000_000
"""As many lists are tried too where there are so many entries."""


def contestants(
    entries: int, width: int, names: Sequence[str] | None = None
) -> dict[str, tuple[str, int]]:
    """Names, factory strings and lists of what is tried at so many entries; all unless named."""
    for name in names or ():
        if name not in CONTESTANTS:
            known = ", ".join(CONTESTANTS)
            raise SettingError(f"there is no index {name!r} of faiss here; choose from {known}")
    lists = {"": lists_for(entries)}
    if entries >= MANY_ENTRIES:
        lists[f" {MANY_LISTS:,} lists"] = MANY_LISTS
    return {
        f"{name}{more}": (spec.format(lists=count, width=width), count)
        for more, count in lists.items()
        for name, spec in CONTESTANTS.items()
        if width >= 128 and (names is None or name in names)
    }


_theirs: dict[str, Any] = {}
"""What the other process holds between two calls."""


def _begin(threads: int, folder: Path, width: int) -> None:
    # Whoever stops us stops it too, without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    faiss.omp_set_num_threads(threads)
    _theirs["scratch"] = Scratch(folder, width)


def _end_with_parent(folder: Path) -> None:
    """Where the reader was killed nobody else would end this process, or remove its files."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _fill(entries: int) -> tuple[float, int]:
    began = time.perf_counter()
    scratch, stock = _theirs["scratch"], _theirs.get("stock")
    lists = lists_for(entries)
    if stock is None or stock.lists < lists:
        _theirs.pop("stock", None)
        stock = _theirs["stock"] = Stock(scratch.keys(0, lists * KEYS_PER_LIST))
    before = len(stock)
    for keys in scratch.chunks(before, entries):
        stock.add(keys)
    _theirs["words"] = scratch.words(entries)
    return time.perf_counter() - began, entries - before


def _ask(queries: Hidden, k: int) -> tuple[float, Distances, Positions]:
    return _found(_theirs["stock"], queries, k)


def _contest(spec: str, lists: int, entries: int, block: int) -> float:
    """Make, train and fill another index, instead of the one before; seconds of it all.

    Entries come block by block, as they do where each block is to be found by the next one.
    """
    began = time.perf_counter()
    scratch = _theirs["scratch"]
    _theirs.pop("contestant", None)
    sample = scratch.keys(0, min(entries, KEYS_PER_LIST * lists))
    index = faiss.index_factory(sample.shape[1], spec)
    inverted = _inverted(index)
    shared = 0.0
    if inverted.d == sample.shape[1]:
        # A rotation at most: the same centroids do, and finding them is dear.
        centroids, shared = _centroids(sample, lists)
        if isinstance(index, faiss.IndexPreTransform):
            chain: Any = index.chain
            rotation = faiss.downcast_VectorTransform(chain.at(0))
            rotation.train(sample)
            centroids = rotation.apply(centroids)
        faiss.downcast_index(inverted.quantizer).add(centroids)
    index.train(sample)
    del sample
    for keys in scratch.chunks(0, entries, block):
        index.add(keys)
    _theirs["contestant"] = index
    return shared + time.perf_counter() - began


def _inverted(index: Any) -> Any:
    return faiss.downcast_index(faiss.extract_index_ivf(index))


def _centroids(sample: Hidden, lists: int) -> tuple[Hidden, float]:
    """Found once for all who share them, charged to each; what was waited for is taken off."""
    held = _theirs.get("centroids")
    waited = 0.0
    if held is None or held[0] != lists:
        began = time.perf_counter()
        found: Any = faiss.Kmeans(sample.shape[1], lists, niter=10, min_points_per_centroid=1)
        found.train(sample)
        waited = time.perf_counter() - began
        held = _theirs["centroids"] = lists, found.centroids, waited
    return held[1], held[2] - waited


def _ask_contestant(queries: Hidden, k: int, probes: int) -> tuple[float, Distances, Positions]:
    index = _theirs["contestant"]
    inverted = _inverted(index)
    inverted.nprobe = min(probes, inverted.nlist)
    if "RaBitQ" in type(inverted).__name__:
        inverted.qb = 8
    return _found(index, queries, k)


def _found(index: Any, queries: Hidden, k: int) -> tuple[float, Distances, Positions]:
    """Seconds, squared distances and words; none, infinitely far, where rows came back short."""
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

    def fill(self, entries: int) -> tuple[float, int]:
        """Bring it to the first `entries` keys of the files; seconds, and how many came."""
        return self._pool.submit(_fill, entries).result()

    def search(self, queries: Hidden, k: int) -> tuple[float, Distances, Positions]:
        """The seconds of the search alone, squared distances, and the words found there."""
        return self._pool.submit(_ask, queries, k).result()

    def contest(self, spec: str, lists: int, entries: int, block: int) -> float:
        """Fill another index with the first `entries` keys, a block at a time; the seconds."""
        return self._pool.submit(_contest, spec, lists, entries, block).result()

    def search_contestant(
        self, queries: Hidden, k: int, probes: int
    ) -> tuple[float, Distances, Positions]:
        """As `search`, of the contestant that was filled last."""
        return self._pool.submit(_ask_contestant, queries, k, probes).result()
