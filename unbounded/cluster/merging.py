"""What shards found, together: the nearest of all of them."""

from typing import final

import numpy as np

from unbounded import _native
from unbounded.cluster.shard import Found
from unbounded.types import Distances, Ids, Positions


@final
class Merged:
    """The nearest so far of some queries, into which the answers of shards are merged.

    >>> merged = Merged(1, 2)
    >>> near, far = np.array([[1.0, 4.0]], np.float32), np.array([[2.0, 9.0]], np.float32)
    >>> merged.merge(far, np.array([[0, 1]]), 2, 1)
    >>> merged.merge(near, np.array([[0, 1]]), 2, 0)
    >>> merged.squared.tolist(), merged.positions.tolist()
    ([[1.0, 2.0]], [[0, 1]])
    """

    def __init__(self, rows: int, k: int) -> None:
        self.squared: Distances = np.full((rows, k), np.inf, np.float32)
        self.positions: Positions = np.full((rows, k), -1, np.int64)

    def merge(self, squared: np.ndarray, entries: np.ndarray, step: int, first: int) -> None:
        """Take in neighbors: entry e is at position `step` · e + `first`."""
        out = np.empty_like(self.squared), np.empty_like(self.positions)
        theirs = np.ascontiguousarray(squared, np.float32), np.ascontiguousarray(entries, np.uint32)
        _native.merge_neighbors(self.squared, self.positions, *theirs, step, first, *out)
        self.squared, self.positions = out


def with_rows(found: Found, rows: Ids, more: Found) -> Found:
    """What was found, with these rows as they were found when more was asked for."""
    shape = len(found.squared), more.squared.shape[1]
    out = np.full(shape, np.inf, np.float32), np.zeros(shape, np.uint32)
    for wide, old, new in zip(out, found[:2], more[:2], strict=True):
        wide[:, : old.shape[1]] = old
        wide[rows] = new
    return Found(*out, more.exact)
