"""Exact search: the k nearest of everything a query is shown, by squared Euclidean distance."""

from typing import final, no_type_check

import numba
import numpy as np
from jaxtyping import Float, Int, UInt64

from unbounded.types import Distances, Hidden, Positions

# Keys at a time. Measured at 512 queries, 256 wide, k = 1,024, 10 k keys, one core, microseconds
# a query: 85 with 1,024, 86 with 2,048, 75 with 4,096, 105 with 8,192.
CHUNK = 4096

# Where a squared distance is less than this share of the two squared norms, too much of it has
# cancelled in |q|² + |x|² − 2 q·x, and the rest depends on how BLAS cut the product: it is taken
# again from the difference. Found by hypothesis: states that settle as one word is repeated.
_CANCELLED = np.float32(0.25)

_NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

# The bits of a float32 infinity.
_INFINITY = np.uint32(0x7F80_0000)


def squared_norms(keys: Hidden) -> Float[np.ndarray, " n"]:
    """The squared length of each row."""
    norms: np.ndarray = np.einsum("nd,nd->n", keys, keys)
    return norms


@final
class Nearest:
    """The k nearest keys shown so far to each query; query t sees positions low[t] to high[t] - 1.

    A distance and a position are packed into one integer: the bits of a float that is not
    negative sort as the float does, and the position below them breaks ties in favor of the older
    key. So selecting is a partition of integers, which numpy does with wide instructions, and the
    result does not depend on the order in which keys were shown.

    >>> keys = np.array([[0.0], [3.0], [1.0]], np.float32)
    >>> near = Nearest(keys[:1], 2, np.array([0]), np.array([3]))
    >>> near.show(keys, squared_norms(keys), 0)
    >>> squared, positions = near.take()
    >>> squared.tolist(), positions.tolist()
    ([[0.0, 1.0]], [[0, 2]])
    """

    def __init__(
        self, queries: Hidden, k: int, low: Int[np.ndarray, " n"], high: Int[np.ndarray, " n"]
    ) -> None:
        self.queries = queries
        self.k = k
        # Positions are packed relative to the oldest that any query sees, so that 32 bits last
        # for any window however long the stream, and for 4 G entries otherwise.
        self._base = int(low.min()) if len(low) else 0
        self._low = low - self._base
        self._high = high - self._base
        self._norms = squared_norms(queries)
        self._best = np.full((len(queries), k), _NOTHING, np.uint64)

    def show(self, keys: Hidden, norms: Float[np.ndarray, " m"], first: int) -> None:
        """Consider keys, the first of which is at position `first`."""
        n, k, chunk = len(self.queries), self.k, min(CHUNK, len(keys))
        if n == 0 or k == 0 or chunk == 0:
            return
        products = np.empty(n * chunk, np.float32)
        both = np.empty((n, k + chunk), np.uint64)
        both[:, :k] = self._best
        for start in range(0, len(keys), chunk):
            stop = min(start + chunk, len(keys))
            out = products[: n * (stop - start)].reshape(n, stop - start)
            np.matmul(self.queries, keys[start:stop].T, out=out)
            found = _collect(
                self.queries,
                keys[start:stop],
                out,
                self._norms,
                norms[start:stop],
                self._low,
                self._high,
                both[:, :k].max(axis=1),
                first + start - self._base,
                both[:, k:],
            )
            both[:, : k + found].partition(k - 1, axis=1)
        self._best = both[:, :k]

    def offer(self, squared: Distances, positions: Positions) -> None:
        """Consider neighbors that were found elsewhere."""
        packed = np.maximum(squared, np.float32(0)).view(np.uint32).astype(np.uint64)
        packed <<= np.uint64(32)
        packed |= (positions - self._base).astype(np.uint64)
        both = np.concatenate([self._best, packed], axis=1)
        if 0 < self.k < both.shape[1]:
            both.partition(self.k - 1, axis=1)
        self._best = both[:, : self.k]

    def take(self, ordered: bool = True) -> tuple[Distances, Positions]:
        """Squared distances, in increasing order or in none, and positions."""
        return unpacked(self._best, ordered, self._base)


def unpacked(
    best: UInt64[np.ndarray, "n k"], ordered: bool, base: int = 0
) -> tuple[Distances, Positions]:
    """Packed neighbors as squared distances and positions; infinity and -1 where none is."""
    if ordered:
        best = np.sort(best, axis=1)
    squared = np.empty(best.shape, np.float32)
    positions = np.empty(best.shape, np.int64)
    _unpack(np.ascontiguousarray(best).ravel(), base, squared.ravel(), positions.ravel())
    return squared, positions


@numba.njit(cache=True, nogil=True)
@no_type_check
def _unpack(best, base, squared, positions):
    bits = squared.view(np.uint32)
    for i in range(len(best)):
        missing = best[i] == _NOTHING
        bits[i] = _INFINITY if missing else np.uint32(best[i] >> np.uint64(32))
        positions[i] = -1 if missing else base + np.int64(best[i] & np.uint64(0xFFFF_FFFF))


@numba.njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def _squared_distance(one, other):
    total = np.float32(0)
    for i in range(len(one)):
        difference = one[i] - other[i]
        total += difference * difference
    return total


@numba.njit(cache=True, nogil=True)
@no_type_check
def _collect(queries, keys, products, query_norms, key_norms, low, high, worst, first, found):
    """Pack what is no farther than the worst kept so far to the front of each row of `found`.

    Returns the longest front; shorter ones are filled up with nothing. Turns the products into
    distances in place, in a loop of its own, because that loop runs on wide instructions.
    """
    longest = 0
    for t in range(products.shape[0]):
        start = max(low[t] - first, 0)
        stop = min(high[t] - first, products.shape[1])
        row = products[t]
        for column in range(start, stop):
            row[column] = max(
                query_norms[t] + key_norms[column] - np.float32(2) * row[column], np.float32(0)
            )
        bits = row.view(np.uint32)
        limit = np.uint32(worst[t] >> np.uint64(32))
        count = 0
        for column in range(start, stop):
            found[t, count] = (np.uint64(bits[column]) << np.uint64(32)) | np.uint64(first + column)
            # What has cancelled may be nearer than it looks.
            count += (bits[column] <= limit) | (
                row[column] < _CANCELLED * (query_norms[t] + key_norms[column])
            )
        for i in range(count):
            column = np.int64(found[t, i] & np.uint64(0xFFFF_FFFF)) - first
            if row[column] < _CANCELLED * (query_norms[t] + key_norms[column]):
                row[column] = _squared_distance(queries[t], keys[column])
                packed = np.uint64(bits[column]) << np.uint64(32)
                found[t, i] = packed | np.uint64(first + column)
        found[t, count:] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
        longest = max(longest, count)
    return longest
