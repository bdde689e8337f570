from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np
import pytest

from unbounded.datastore import IVFPQ, Flat
from unbounded.datastore.inverted import Inverted, centroids_of
from unbounded.errors import SettingError
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
    inverted.add(keys, np.zeros(len(keys), np.int64))
    positions = search(inverted, keys[:1], 1500)
    assert positions.min() >= 0
    assert len(np.unique(positions)) == 1500
    assert positions[0, 0] == 0


def test_probes_are_never_more_than_lists() -> None:
    keys = states(500)
    inverted = Inverted(product_codes(keys, 4), probes=100)
    inverted.add(keys, np.zeros(len(keys), np.int64))
    assert inverted.probes == 4
    assert search(inverted, keys[:3], 500).min() == 0


def test_a_fallback_does_not_widen_later_searches() -> None:
    keys = states(500)
    inverted = Inverted(product_codes(keys, 16), probes=1)
    inverted.add(keys, np.zeros(len(keys), np.int64))
    before = search(inverted, keys[:20], 10)
    assert search(inverted, keys[:3], 500).min() == 0
    np.testing.assert_array_equal(search(inverted, keys[:20], 10), before)


def test_threads_that_fall_back_do_not_disturb_each_other() -> None:
    """A probe count set for the time of a search would be seen by the other one."""
    keys = states(500)
    inverted = Inverted(product_codes(keys, 16), probes=1)
    inverted.add(keys, np.zeros(len(keys), np.int64))
    expected = search(inverted, keys[:3], 500)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(search, inverted, keys[:3], 500) for _ in range(40)]
        for each in both:
            np.testing.assert_array_equal(each.result(), expected)


def test_the_bytes_told_are_those_that_faiss_would_write() -> None:
    index = IVFPQ(64, lists=32)
    keys = np.random.default_rng(0).normal(size=(20_000, 64)).astype(np.float32)
    index.add(keys, np.zeros(20_000, np.int64))
    written = len(index.state()["index.inverted"]) + 20_000 * 4
    # Residual codes come with a table for speed that is made anew when they are read back.
    table = 32 * 64 * 256 * 4
    assert 0.9 * written < index.bytes - table < 1.2 * written


def test_it_is_the_papers_configuration() -> None:
    index = IVFPQ(256)
    assert (index.lists, index.probes, index.code_size) == (4096, 8, 64)
    assert index.exact == 39 * 4096


def test_it_is_exact_until_it_is_trained_and_says_when() -> None:
    keys = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    index, flat = IVFPQ(4, lists=4, probes=2, code_size=2, train_at=300), Flat(4)
    index.add(keys[:299], np.arange(299))
    flat.add(keys[:299], np.arange(299))
    assert index.events == []
    one, other = index.search(keys, 50), flat.search(keys, 50)
    np.testing.assert_array_equal(one.squared, other.squared)
    np.testing.assert_array_equal(one.positions, other.positions)
    index.add(keys[299:], np.arange(101))
    assert [event.entries for event in index.events] == [300]
    assert index.events[0].what == "inverted file of 4 lists, 2 bytes a code"
    assert len(index) == 400


def test_settings_that_cannot_be_honored_are_refused() -> None:
    with pytest.raises(SettingError, match="codes of 7 bytes for keys 16 wide"):
        IVFPQ(16, code_size=7)
    with pytest.raises(SettingError, match="9 probes of 8 lists"):
        IVFPQ(16, lists=8, probes=9, code_size=4)
    with pytest.raises(SettingError, match="training at 100 keys; 8 lists need 256"):
        IVFPQ(16, lists=8, code_size=4, train_at=100)
