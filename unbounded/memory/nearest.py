"""Exact search: the k nearest of everything a query is shown, by squared Euclidean distance."""

from typing import final, no_type_check

import numba
import numpy as np
from jaxtyping import Float, Int, UInt64

from unbounded.memory.keep import keep
from unbounded.memory.select import INFINITY, NOTHING, rough_limit, select
from unbounded.types import Distances, Hidden, Positions

# Keys at a time. Measured at 256 queries, 256 wide, k = 1,024, 10 k keys, two threads, µs a query:
# 72 with 2,048, 61 with 4,096, 52 with 16,384.
CHUNK = 16_384

# Where the squared distance of the k-th neighbor, by which all are weighed, is less than this share
# of the two squared norms, too much has cancelled in |q|² + |x|² − 2 q·x, and the rest depends on
# how BLAS cut the product: distances are then taken again from the difference. Found by hypothesis:
# states that settle as one word is repeated. On real states of three domains it never was (the
# k-th of 10,000 was at 0.4 or more in 99 of 100).
_CANCELLED = np.float32(0.25)

_NARROW = 32

# Products of 256 dimensions are off by less than this share of the squared norms.
_SLACK = np.float32(1e-4)


def squared_norms(keys: Hidden) -> Float[np.ndarray, " n"]:
    """The squared length of each row."""
    norms: np.ndarray = np.einsum("nd,nd->n", keys, keys)
    return norms


Packed = UInt64[np.ndarray, "n k"]
"""A row of neighbors in no order: the bits of a squared distance above those of a position."""


@final
class Nearest:
    """The k nearest keys shown so far to each query; query t sees positions low[t] to high[t] - 1.

    A distance and a position are packed into one integer: the bits of a float that is not
    negative sort as the float does, and the position below them breaks ties in favor of the older
    key. So the result does not depend on the order in which keys were shown.

    >>> keys = np.array([[0.0], [3.0], [1.0]], np.float32)
    >>> near = Nearest(keys[:1], 2, np.array([0]), np.array([3]))
    >>> near.show(keys, squared_norms(keys), 0)
    >>> squared, positions = np.empty((1, 2), np.float32), np.empty((1, 2), np.int64)
    >>> unpack(near.packed, near.oldest, squared, positions)
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
        self.oldest = int(low.min()) if len(low) else 0
        self.newest = int(high.max()) if len(high) else 0
        self._low = low - self.oldest
        self._high = high - self.oldest
        self._norms = squared_norms(queries)
        self._best = np.full((len(queries), k), NOTHING, np.uint64)

    def show(self, keys: Hidden, norms: Float[np.ndarray, " m"], first: int) -> None:
        """Consider keys, the first of which is at position `first`."""
        n, chunk = len(self.queries), min(CHUNK, len(keys))
        if n == 0 or self.k == 0 or chunk == 0:
            return
        products = np.empty(n * chunk, np.float32)
        for start in range(0, len(keys), chunk):
            stop = min(start + chunk, len(keys))
            out = products[: n * (stop - start)].reshape(n, stop - start)
            # Keys and queries were checked; BLAS at times raises flags over what lies beside them.
            with np.errstate(all="ignore"):
                np.matmul(self.queries, keys[start:stop].T, out=out)
            _merge(
                self.queries,
                keys[start:stop],
                out,
                self._norms,
                norms[start:stop],
                self._low,
                self._high,
                first + start - self.oldest,
                self._best,
            )

    def offer(self, squared: Distances, positions: Positions) -> None:
        """Consider neighbors that were found elsewhere."""
        packed = np.maximum(squared, np.float32(0)).view(np.uint32).astype(np.uint64)
        packed <<= np.uint64(32)
        packed |= (positions - self.oldest).astype(np.uint64)
        both = np.concatenate([self._best, packed], axis=1)
        if 0 < self.k < both.shape[1]:
            both.partition(self.k - 1, axis=1)
        self._best = both[:, : self.k]

    @property
    def packed(self) -> Packed:
        """The nearest of each query so far, in no order, relative to `oldest`."""
        return self._best


@numba.njit(cache=True, nogil=True)
@no_type_check
def unpack(packed, base, squared, positions):
    """Squared distances and positions of packed neighbors; infinity and -1 where none is."""
    bits = squared.view(np.uint32)
    for t in range(packed.shape[0]):
        for i in range(packed.shape[1]):
            missing = packed[t, i] == NOTHING
            bits[t, i] = INFINITY if missing else np.uint32(packed[t, i] >> np.uint64(32))
            position = base + np.int64(packed[t, i] & np.uint64(0xFFFF_FFFF))
            positions[t, i] = -1 if missing else position


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
def _merge(queries, keys, products, query_norms, key_norms, low, high, first, best):
    """Keep the nearest of those in each row of `best` and the keys that its query may see."""
    slots = products.shape[1] + best.shape[1]
    bits, places = np.empty(slots, np.uint32), np.empty(slots, np.uint32)
    near_bits, near_places = np.empty(slots, np.uint32), np.empty(slots, np.uint32)
    kept_bits, kept_places = np.empty(slots, np.uint32), np.empty(slots, np.uint32)
    for i in range(products.shape[1]):
        places[i] = first + i
    largest, wide = key_norms.max(), keys.shape[1] > _NARROW
    for t in range(products.shape[0]):
        start = max(low[t] - first, 0)
        stop = min(high[t] - first, products.shape[1])
        if stop <= start:
            continue
        seen = stop - start
        here, there = bits[:seen], places[start:stop]
        _complete(products[t, start:stop], query_norms[t], key_norms[start:stop], here)
        # Those that are near enough by distances that may have cancelled, and a little more.
        k = min(best.shape[1], seen)
        limit = INFINITY
        if seen > k:
            limit = _further(rough_limit(here, seen, k), _SLACK * (query_norms[t] + largest))
        count = keep(here, there, seen, np.uint32(0), limit, near_bits, near_places)
        if count < k:
            count = keep(here, there, seen, np.uint32(0), INFINITY, near_bits, near_places)
        # Narrow keys cancel sooner, and cost little to be taken again: all of them are, for none
        # is further than twice the two squared norms.
        norms = (query_norms[t] + largest) * (np.float32(1) if wide else np.float32(16))
        if min(limit, near_bits[:count].max()) < _bits(_CANCELLED * norms):
            near = near_bits.view(np.float32)
            for i in range(count):
                if near[i] < _CANCELLED * norms:
                    near[i] = _squared_distance(queries[t], keys[np.int64(near_places[i]) - first])
        # And those that were the nearest so far.
        for i in range(best.shape[1]):
            if best[t, i] != NOTHING:
                near_bits[count] = np.uint32(best[t, i] >> np.uint64(32))
                near_places[count] = np.uint32(best[t, i] & np.uint64(0xFFFF_FFFF))
                count += 1
        select(near_bits, near_places, count, kept_bits, kept_places, best[t])


@numba.njit(cache=True, nogil=True)
@no_type_check
def _complete(products, query_norm, key_norms, bits):
    """Squared distances from products, as bits."""
    squared = bits.view(np.float32)
    for i in range(len(products)):
        squared[i] = max(query_norm + key_norms[i] - np.float32(2) * products[i], np.float32(0))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _bits(value):
    """The bits of a float."""
    word = np.empty(1, np.float32)
    word[0] = value
    return word.view(np.uint32)[0]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _further(bits, slack):
    """The bits of a float that is larger by so much."""
    word = np.empty(1, np.uint32)
    word[0] = bits
    word.view(np.float32)[0] += slack
    return min(word[0], INFINITY)
