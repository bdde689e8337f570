"""From four queries to sixty-four codes at once: what every search does most of the time."""

from typing import Any, no_type_check

import numba
import numpy as np

from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, WORDS, shift_of
from unbounded.memory.instructions import GROUP, HALF, WIDE, address
from unbounded.memory.products import CHUNK as CHUNK
from unbounded.memory.products import multiplier

TILE = 4
"""Queries that look at a chunk together: what is taken from memory and unpacked serves them all."""

WAY = "wide" if WIDE else "half" if HALF else "any"
"""How this processor multiplies."""


def scanner(way: str) -> tuple[Any, Any]:
    """`distances` and `to_centroids` in one of the three ways of `multiplier`."""
    # A tile that is not full is not computed in full: in a large memory few queries share a list.
    one_to_codes, two_to_codes, all_to_codes = (
        multiplier(way, WORDS, LENGTH, halves=True, queries=queries) for queries in (1, 2, TILE)
    )
    all_to_centroids = multiplier(way, CENTROID_WORDS, CENTROID_WORDS - 1, False, queries=TILE)

    @numba.njit(nogil=True)
    @no_type_check
    def distances(codes, chunk, following, queries, offsets, scales, many, out):
        codes_at, next_at = address(codes, chunk), address(codes, following)
        queries_at, offsets_at = address(queries, 0), address(offsets, 0)
        scales_at, out_at = address(scales, 0), address(out, 0)
        if many == 1:
            one_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)
        elif many == 2:
            two_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)
        else:
            all_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)

    @numba.njit(nogil=True)
    @no_type_check
    def to_centroids(centroids, chunk, queries, offsets, scales, out):
        # Behind the last chunk nothing is read: to ask for memory ahead never fails.
        centroids_at, next_at = address(centroids, chunk), address(centroids, chunk + 1)
        queries_at, offsets_at = address(queries, 0), address(offsets, 0)
        scales_at, out_at = address(scales, 0), address(out, 0)
        all_to_centroids(centroids_at, next_at, queries_at, offsets_at, scales_at, out_at)

    return distances, to_centroids


distances, to_centroids = scanner(WAY)
"""Squared distances of the first `many` queries of a tile, rows of `out`, to a chunk of codes.

The other rows are left as they are, or written over. The chunk `following` is what will be asked
for next, or any chunk: chunks of a list lie anywhere in memory, and to wait for one takes longer
than all that is done with it. And the same to a chunk of centroids, for which a query has another
offset and scale."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def _plainly(chunks, chunk, queries, offsets, scales, many, out, words_a_code, length, halves):
    """What a `multiplier` does, one product at a time, sixteen codes side by side."""
    codes = chunks[chunk]
    lengths = codes.view(np.float32)
    products = np.empty(GROUP, np.int32)
    axes_a_word, mask = (8, np.uint32(15)) if halves else (4, np.uint32(255))
    for query in range(many):
        for group in range(CHUNK // GROUP):
            first = group * GROUP * words_a_code
            products[:] = 0
            for axis in range(AXES):
                start = first + (axis // axes_a_word) * GROUP
                words = codes[start : start + GROUP]
                shift = np.uint32(shift_of(axis) if halves else 8 * (axis % 4))
                asked = np.int32(queries[query, axis])
                for i in range(GROUP):
                    products[i] += asked * np.int32((words[i] >> shift) & mask)
            for i in range(GROUP):
                squared = (offsets[query] + lengths[first + length * GROUP + i]) - scales[
                    query
                ] * np.float32(products[i])
                out[query, group * GROUP + i] = squared if squared > 0 else np.float32(0)


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_distances(codes, chunk, following, queries, offsets, scales, many, out):
    """The definition of `distances`."""
    _plainly(codes, chunk, queries, offsets, scales, many, out, WORDS, LENGTH, True)


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_to_centroids(centroids, chunk, queries, offsets, scales, out):
    """The definition of `to_centroids`."""
    words, length = CENTROID_WORDS, CENTROID_WORDS - 1
    _plainly(centroids, chunk, queries, offsets, scales, TILE, out, words, length, False)
