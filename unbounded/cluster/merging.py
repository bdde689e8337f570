"""One row of neighbors out of several, each of them nearest first."""

from typing import final, no_type_check

import numba
import numpy as np

from unbounded.memory import Neighbors


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
        _merge(
            old.squared,
            old.words,
            old.positions,
            squared,
            entries,
            words,
            table,
            step,
            first,
            new.squared,
            new.words,
            new.positions,
        )
        self.found = new


@numba.njit(cache=True, nogil=True)
@no_type_check
def _merge(
    squared, words, places, squared2, entries2, words2, table, step, first, out, out_words, out_at
):
    """Two sorted rows into one; of two as near the one at the lower position."""
    for t in range(out.shape[0]):
        i, j = 0, 0
        for slot in range(out.shape[1]):
            mine = places[t, i]
            theirs = np.int64(-1)
            if j < squared2.shape[1] and squared2[t, j] < np.inf:
                theirs = np.int64(entries2[t, j]) * step + first
            take = theirs >= 0 and (
                mine < 0
                or squared2[t, j] < squared[t, i]
                or (squared2[t, j] == squared[t, i] and theirs < mine)
            )
            if take:
                out[t, slot] = squared2[t, j]
                out_words[t, slot] = table[words2[t, j]]
                out_at[t, slot] = theirs
                j += 1
            else:
                out[t, slot] = squared[t, i]
                out_words[t, slot] = words[t, i]
                out_at[t, slot] = mine
                i += 1
