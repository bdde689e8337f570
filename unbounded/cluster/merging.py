"""One row of neighbors out of several, each of them nearest first."""

from typing import final

import numpy as np

from unbounded import _native
from unbounded.datastore import Neighbors


@final
class Merged:
    """The nearest so far of some queries, into which the answers of shards are merged.

    >>> merged = Merged(1, 2)
    >>> near, far = np.array([[1.0, 4.0]], np.float32), np.array([[2.0, 9.0]], np.float32)
    >>> places = np.array([[0, 1]], np.uint32)
    >>> merged.merge(far, places, places, np.array([7, 8]), 2, 1)
    >>> merged.merge(near, places, places, np.array([5, 6]), 2, 0)
    >>> merged.found.words.tolist(), merged.found.positions.tolist()
    ([[5, 7]], [[0, 1]])
    """

    def __init__(self, rows: int, k: int) -> None:
        self._k = k
        self.found = Neighbors(
            np.full((rows, k), np.inf, np.float32),
            np.full((rows, k), -1, np.int32),
            np.full((rows, k), -1, np.int64),
        )

    def merge(
        self,
        squared: np.ndarray,
        entries: np.ndarray,
        words: np.ndarray,
        table: np.ndarray,
        step: int,
        first: int,
    ) -> None:
        """Take in neighbors: entry e is at position `step` · e + `first`, word w is `table[w]`."""
        old, shape = self.found, self.found.squared.shape
        new = Neighbors(
            np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(shape, np.int64)
        )
        _native.merge_neighbors(
            *(old.squared, old.words, old.positions),
            np.ascontiguousarray(squared, np.float32),
            np.ascontiguousarray(entries, np.uint32),
            np.ascontiguousarray(words, np.int32),
            np.ascontiguousarray(table, np.int64),
            *(step, first),
            *(new.squared, new.words, new.positions),
        )
        self.found = new
