from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.scratch import Scratch
from benchmarks.search import exact
from benchmarks.stock import Stock, StockProcess, lists_for
from unbounded.types import Hidden


def keys_of(count: int) -> Hidden:
    return np.random.default_rng(1).normal(size=(count, 16)).astype(np.float32)


def test_the_paper_has_4096_lists_where_there_are_enough_states() -> None:
    assert (lists_for(10_000_000), lists_for(39_000), lists_for(10)) == (4096, 1000, 1)


def test_scratch_files_give_back_what_was_written(tmp_path: Path) -> None:
    scratch, keys = Scratch(tmp_path, 16), keys_of(100)
    for start in (0, 30):
        stop = 30 if start == 0 else 100
        scratch.append(keys[start:stop], np.arange(start, stop))
    np.testing.assert_allclose(scratch.keys(20, 40), keys[20:40], rtol=1e-3)
    np.testing.assert_array_equal(scratch.words(50), np.arange(50))
    np.testing.assert_array_equal(
        np.concatenate(list(scratch.chunks(0, 100))), scratch.keys(0, 100)
    )


def test_stock_finds_most_of_what_is_near() -> None:
    keys = keys_of(2_000)
    stock = Stock(keys)
    stock.add(keys)
    found = stock.search(keys[:50], 1)[1]
    assert np.mean(found[:, 0] == np.arange(50)) > 0.9  # measured 1.0
    assert stock.bytes > 2_000 * (16 + 8)


def test_a_process_of_its_own_gives_words_and_says_what_is_missing(tmp_path: Path) -> None:
    scratch, keys = Scratch(tmp_path, 16), keys_of(2_000)
    scratch.append(keys, np.arange(2_000) + 7)
    with closing(StockProcess(1, tmp_path, 16)) as stock:
        stock.fill(1_000)
        stock.fill(2_000)
        seconds, squared, words = stock.search(keys[:50], 1_024)
    assert seconds > 0
    assert np.mean(words[:, 0] == np.arange(50) + 7) > 0.9
    # Eight of 51 lists do not hold 1,024 keys.
    missing = words < 0
    assert missing[:, -1].any()
    assert np.isinf(squared[missing]).all()
    assert np.isfinite(squared[~missing]).all()


def test_exact_search_does_not_depend_on_the_chunks() -> None:
    keys, queries = keys_of(500), keys_of(20)
    squared = ((queries[:, None] - keys[None]) ** 2).sum(axis=2)
    brute = np.argsort(squared, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(exact([keys], queries, 9), brute)
    np.testing.assert_array_equal(exact([keys[:4], keys[4:90], keys[90:]], queries, 9), brute)
