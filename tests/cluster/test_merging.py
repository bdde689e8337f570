"""Rows of neighbors merged one by one are the nearest of all of them."""

import numpy as np
import pytest

from unbounded.cluster.merging import Merged


@pytest.mark.parametrize("k", [0, 1, 5, 40])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_what_is_merged_is_what_sorting_all_of_them_gives(shards: int, k: int) -> None:
    random = np.random.default_rng(k)
    rows, width = 7, 9
    merged = Merged(rows, k)
    everything: list[list[tuple[float, int]]] = [[] for _ in range(rows)]
    for shard in range(shards):
        # Few distances, so that many are as near; what is missing is infinitely far.
        squared = np.sort(random.integers(0, 4, (rows, width)).astype(np.float32), axis=1)
        squared[:, width - shard :] = np.inf
        entries = np.tile(np.arange(width, dtype=np.uint32), (rows, 1))
        merged.merge(squared, entries, shards, shard)
        for t, e in np.argwhere(np.isfinite(squared)).tolist():
            everything[t].append((float(squared[t, e]), e * shards + shard))
    for t in range(rows):
        expected = sorted(everything[t])[:k]
        many = len(expected)
        assert list(zip(merged.squared[t], merged.positions[t], strict=True))[:many] == expected
        assert np.isinf(merged.squared[t, many:]).all()
        assert (merged.positions[t, many:] == -1).all()


def test_rows_that_do_not_fit_are_refused() -> None:
    one, entry = np.ones((1, 1), np.float32), np.zeros((1, 1), np.uint32)
    with pytest.raises(ValueError, match="not of the same rows"):
        Merged(2, 1).merge(one, entry, 1, 0)
