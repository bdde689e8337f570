"""The k smallest of many distances, without sorting them."""

from typing import no_type_check

import numba
import numpy as np

from unbounded.memory.keep import keep

BINS = 512

NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""A packed neighbor that is none."""

INFINITY = np.uint32(0x7F80_0000)
"""The bits of a float32 infinity."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def kth(bits, n, k):
    """A narrow range of bits, low and high, into which the k-th smallest falls.

    By a histogram of the leading bits and not by sorting. Bits of floats that are not negative
    sort as the floats do; infinities are not counted.
    """
    low, high = INFINITY, np.uint32(0)
    for i in range(n):
        low = min(low, bits[i])
        high = max(high, np.uint32(0) if bits[i] == INFINITY else bits[i])
    shift = np.uint32(0)
    while (high - low) >> shift >= BINS:
        shift += np.uint32(1)
    bins = np.zeros(BINS + 1, np.int32)
    for i in range(n):
        bins[min((bits[i] - low) >> shift, np.uint32(BINS))] += 1
    last, below = 0, 0
    while last < BINS and below + bins[last] < k:
        below += bins[last]
        last += 1
    low += np.uint32(last) << shift
    return low, min(low + (np.uint32(1) << shift), INFINITY)


@numba.njit(cache=True, nogil=True)
@no_type_check
def rough_limit(bits, slots, k):
    """Bits below which probably at least k lie, and not many more: from every eighth."""
    sample = bits[:slots:8].copy()
    # Three times what chance would have it off by.
    more = np.int64(3 * np.sqrt(k / 8)) + 1
    return kth(sample, len(sample), k // 8 + more)[1]


@numba.njit(cache=True, nogil=True)
@no_type_check
def select(bits, positions, n, kept_bits, kept_positions, best):
    """Pack the len(best) nearest of the first n, of two as near the older; nothing where too few.

    `kept_bits` and `kept_positions` are working room for n words.
    """
    k = min(len(best), n)
    best[k:] = NOTHING
    if n <= k:
        _pack(bits, positions, n, best)
        return
    low, high = kth(bits, n, k)
    sure = keep(bits, positions, n, np.uint32(0), low, kept_bits, kept_positions)
    _pack(kept_bits, kept_positions, sure, best)
    tied = keep(bits, positions, n, low, high, kept_bits, kept_positions)
    packed = np.empty(tied, np.uint64)
    _pack(kept_bits, kept_positions, tied, packed)
    packed.sort()
    best[sure:k] = packed[: k - sure]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _pack(bits, positions, n, packed):
    for i in range(n):
        packed[i] = (np.uint64(bits[i]) << np.uint64(32)) | np.uint64(positions[i])
