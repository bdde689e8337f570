from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np

from unbounded.datastore import IVFPQ
from unbounded.datastore.inverted import Inverted, centroids_of
from unbounded.types import Hidden, Positions


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


def product_codes(keys: Hidden, lists: int) -> Any:
    index = faiss.IndexIVFPQ(centroids_of(keys, lists), 8, lists, 4, 4)
    index.train(keys)
    return index


def search(inverted: Inverted, queries: Hidden, k: int) -> Positions:
    return inverted.search(queries, k)[1]


def test_a_query_whose_lists_hold_too_little_is_searched_again() -> None:
    keys = states(2000)
    # One key in a list of its own, far from all others: the first probe of its neighborhood
    # finds it alone.
    keys[0] = 50
    inverted = Inverted(product_codes(keys, 30), probes=1)
    inverted.add(keys)
    positions = search(inverted, keys[:1], 1500)
    assert positions.min() >= 0
    assert len(np.unique(positions)) == 1500
    assert positions[0, 0] == 0


def test_probes_are_never_more_than_lists() -> None:
    keys = states(500)
    inverted = Inverted(product_codes(keys, 4), probes=100)
    inverted.add(keys)
    assert inverted.probes == 4
    assert search(inverted, keys[:3], 500).min() == 0


def test_a_fallback_does_not_widen_later_searches() -> None:
    keys = states(500)
    inverted = Inverted(product_codes(keys, 16), probes=1)
    inverted.add(keys)
    before = search(inverted, keys[:20], 10)
    assert search(inverted, keys[:3], 500).min() == 0
    np.testing.assert_array_equal(search(inverted, keys[:20], 10), before)


def test_threads_that_fall_back_do_not_disturb_each_other() -> None:
    """A probe count set for the time of a search would be seen by the other one."""
    keys = states(500)
    inverted = Inverted(product_codes(keys, 16), probes=1)
    inverted.add(keys)
    expected = search(inverted, keys[:3], 500)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(search, inverted, keys[:3], 500) for _ in range(40)]
        for each in both:
            np.testing.assert_array_equal(each.result(), expected)


def test_the_bytes_told_are_those_that_faiss_would_write() -> None:
    index = IVFPQ(64, lists=32)
    index.add(np.random.default_rng(0).normal(size=(20_000, 64)).astype(np.float32))
    written = len(index.state()["inverted"])
    # Residual codes come with a table for speed that is made anew when they are read back.
    table = 32 * 64 * 256 * 4
    assert 0.9 * written < index.bytes - table < 1.2 * written
