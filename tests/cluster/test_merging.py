"""Rows of neighbors merged one by one are the nearest of all of them."""

import numpy as np
import pytest

from unbounded.cluster.messages import Merged


@pytest.mark.parametrize("k", [0, 1, 5, 40])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_what_is_merged_is_what_sorting_all_of_them_gives(shards: int, k: int) -> None:
    random = np.random.default_rng(k)
    rows, width = 7, 9
    merged = Merged(rows, k)
    table = random.integers(0, 2**31, 50)
    everything: list[list[tuple[float, int, int]]] = [[] for _ in range(rows)]
    for shard in range(shards):
        # Few distances, so that many are as near; what is missing is infinitely far.
        squared = np.sort(random.integers(0, 4, (rows, width)).astype(np.float32), axis=1)
        squared[:, width - shard :] = np.inf
        order = np.arange(width, dtype=np.uint32)
        entries = np.tile(order, (rows, 1))
        words = random.integers(0, 50, (rows, width)).astype(np.int32)
        merged.merge(squared, entries, words, table, shards, shard)
        for t, e in np.argwhere(np.isfinite(squared)).tolist():
            everything[t].append((float(squared[t, e]), e * shards + shard, table[words[t, e]]))
    for t in range(rows):
        expected = sorted(everything[t])[:k]
        found = merged.found
        many = len(expected)
        got = zip(found.squared[t], found.positions[t], found.words[t], strict=True)
        assert list(got)[:many] == expected
        assert np.isinf(found.squared[t, many:]).all()
        assert (found.positions[t, many:] == -1).all()


def test_a_word_that_a_shard_has_not_told_is_refused() -> None:
    one, entry = np.ones((1, 1), np.float32), np.zeros((1, 1), np.uint32)
    with pytest.raises(ValueError, match="a word beyond its shard's table"):
        Merged(1, 1).merge(one, entry, np.full((1, 1), 3), np.array([5, 6]), 1, 0)
    with pytest.raises(ValueError, match="not of the same rows"):
        Merged(2, 1).merge(one, entry, entry, np.array([5, 6]), 1, 0)
