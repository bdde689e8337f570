from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import pytest

from unbounded.memory import IVFPQ, Auto, Index
from unbounded.memory.inverted import Inverted, centroids_of
from unbounded.memory.nearest import Nearest
from unbounded.types import Hidden, Positions


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


def fast_scan(keys: Hidden, lists: int) -> Any:
    index = faiss.IndexIVFPQFastScan(centroids_of(keys, lists), 8, lists, 4, 4)
    index.by_residual = False
    index.train(keys)
    return index


def search(inverted: Inverted, queries: Hidden, k: int) -> Positions:
    n = len(queries)
    nearest = Nearest(queries, k, np.zeros(n, np.int64), np.full(n, len(inverted)))
    inverted.show_to(nearest)
    return nearest.take()[1]


def test_a_query_whose_lists_hold_too_little_is_searched_again() -> None:
    keys = states(2000)
    # One key in a list of its own, far from all others: the first probe of its neighborhood
    # finds it alone.
    keys[0] = 50
    inverted = Inverted(fast_scan(keys, 30), probes=1)
    inverted.add(keys)
    positions = search(inverted, keys[:1], 1500)
    assert positions.min() >= 0
    assert len(np.unique(positions)) == 1500
    assert positions[0, 0] == 0


def test_decoding_and_coding_again_loses_nothing() -> None:
    """On this rests that lists can be made anew from the codes, any number of times."""
    keys = states(3000)
    first = Inverted(fast_scan(keys, 20), probes=4)
    first.add(keys)
    decoded = first.decoded(0, 3000)
    index = faiss.IndexIVFPQFastScan(centroids_of(decoded, 33), 8, 33, 4, 4)
    index.by_residual = False
    index.pq, index.is_trained = first.index.pq, True
    second = Inverted(index, probes=4)
    for block in first.blocks():
        second.add(block)
    np.testing.assert_array_equal(second.decoded(0, 3000), decoded)


def test_probes_are_never_more_than_lists() -> None:
    keys = states(500)
    inverted = Inverted(fast_scan(keys, 4), probes=100)
    inverted.add(keys)
    assert inverted.probes == 4
    assert search(inverted, keys[:3], 500).min() == 0


def test_the_probes_of_a_fallback_are_forgotten() -> None:
    keys = states(500)
    inverted = Inverted(fast_scan(keys, 4), probes=1)
    inverted.add(keys)
    before = inverted.index.nprobe
    search(inverted, keys[:3], 500)
    assert inverted.index.nprobe == before


@pytest.mark.parametrize("make", [lambda: Auto(64, exact=1024), lambda: IVFPQ(64, lists=32)])
def test_the_bytes_told_are_those_that_faiss_would_write(make: Callable[[], Index]) -> None:
    index = make()
    index.add(np.random.default_rng(0).normal(size=(20_000, 64)).astype(np.float32))
    written = len(index.state()["inverted"])
    # Residual codes come with a table for speed that is made anew when they are read back.
    table = 32 * 64 * 256 * 4 if isinstance(index, IVFPQ) else 0
    assert 0.9 * written < index.bytes - table < 1.2 * written
