"""Lists of codes as chains of chunks: appending to them, taking them apart, cutting them in two."""

from typing import NamedTuple, no_type_check

import numba
import numpy as np
from jaxtyping import Int32, Int64, UInt32

from unbounded.memory.codes import AXES, CENTROID_WORDS, POSITION, WORDS, decode, store_centroid
from unbounded.memory.instructions import GROUP
from unbounded.memory.scan import CHUNK, TILE, to_centroids

_ROUNDS = 4
"""Of two-means, after a first cut across the longest direction."""


class Chunks(NamedTuple):
    """Chunks of codes, chained into lists, and the centroid of each list."""

    codes: UInt32[np.ndarray, "chunks 1088"]
    next: Int32[np.ndarray, " chunks"]
    heads: Int32[np.ndarray, " lists"]
    tails: Int32[np.ndarray, " lists"]
    lengths: Int64[np.ndarray, " lists"]
    settled: Int64[np.ndarray, " lists"]
    """What the lengths were when lists were last cut."""
    centroids: UInt32[np.ndarray, "centroid_chunks 1984"]
    counts: Int64[np.ndarray, " 3"]
    """Lists, chunks ever taken, and the first of those given back (-1: none)."""


LISTS, TAKEN, FREE = 0, 1, 2


@numba.njit(cache=True, nogil=True)
@no_type_check
def write_code(code, chunk, slot):
    """Put a code into a chunk."""
    first = (slot // GROUP) * GROUP * len(code) + slot % GROUP
    for word in range(len(code)):
        chunk[first + word * GROUP] = code[word]


@numba.njit(cache=True, nogil=True)
@no_type_check
def read_code(chunk, slot, code):
    """Take a code out of a chunk."""
    first = (slot // GROUP) * GROUP * len(code) + slot % GROUP
    for word in range(len(code)):
        code[word] = chunk[first + word * GROUP]


@numba.njit(cache=True, nogil=True)
@no_type_check
def append(chunks, at, code):
    """Put an entry at the end of a list."""
    slot = chunks.lengths[at] % CHUNK
    if slot == 0:
        new = chunks.counts[FREE]
        if new >= 0:
            chunks.counts[FREE] = chunks.next[new]
        else:
            new = chunks.counts[TAKEN]
            chunks.counts[TAKEN] += 1
        chunks.next[new] = -1
        if chunks.lengths[at] == 0:
            chunks.heads[at] = new
        else:
            chunks.next[chunks.tails[at]] = new
        chunks.tails[at] = new
    write_code(code, chunks.codes[chunks.tails[at]], slot)
    chunks.lengths[at] += 1


@numba.njit(cache=True, nogil=True)
@no_type_check
def append_all(chunks, lists, codes, first):
    """Append entries whose positions count up from `first`, each to its list."""
    for i in range(len(codes)):
        codes[i, POSITION] = first + i
        append(chunks, lists[i], codes[i])


@numba.njit(cache=True, nogil=True)
@no_type_check
def take_apart(chunks, at, codes):
    """Read all entries of a list and give its chunks back."""
    chunk = chunks.heads[at]
    for i in range(chunks.lengths[at]):
        slot = i % CHUNK
        read_code(chunks.codes[chunk], slot, codes[i])
        if slot == CHUNK - 1:
            chunk = chunks.next[chunk]
    if chunks.lengths[at]:
        chunks.next[chunks.tails[at]] = chunks.counts[FREE]
        chunks.counts[FREE] = chunks.heads[at]
    chunks.lengths[at] = 0


@numba.njit(cache=True, nogil=True)
@no_type_check
def ask_centroids(chunks, queries, offsets, scales, totals, first, found):
    """Squared distances of queries `first` and on, a tile of them, to every centroid.

    Returns how many queries there were; `found` has a row for each and is filled up to a chunk.
    """
    many = min(TILE, len(queries) - first)
    asked = np.zeros((TILE, AXES), np.int8)
    tile_offsets, tile_scales = np.zeros(TILE, np.float32), np.zeros(TILE, np.float32)
    for j in range(many):
        asked[j] = queries[first + j]
        tile_offsets[j] = offsets[first + j] + totals[first + j]
        tile_scales[j] = scales[first + j] / np.float32(16)
    out = np.empty((TILE, CHUNK), np.float32)
    for chunk in range(found.shape[1] // CHUNK):
        to_centroids(chunks.centroids, chunk, asked, tile_offsets, tile_scales, out)
        for j in range(many):
            # A slice would be counted by everyone who holds it.
            for slot in range(CHUNK):
                found[j, chunk * CHUNK + slot] = out[j, slot]
    return many


@numba.njit(cache=True, nogil=True)
@no_type_check
def room_for_centroids(chunks):
    """What `ask_centroids` fills."""
    return np.empty((TILE, -(-chunks.counts[LISTS] // CHUNK) * CHUNK), np.float32)


@numba.njit(cache=True, nogil=True)
@no_type_check
def nearest_list(chunks, queries, offsets, scales, totals, lists):
    """The list with the nearest centroid for each query; the older of two as near."""
    found = room_for_centroids(chunks)
    for first in range(0, len(queries), TILE):
        many = ask_centroids(chunks, queries, offsets, scales, totals, first, found)
        for j in range(many):
            best = np.float32(np.inf)
            # A list even where every distance is too large for a float.
            lists[first + j] = 0
            for i in range(chunks.counts[LISTS]):
                if found[j, i] < best:
                    best = found[j, i]
                    lists[first + j] = i


@numba.njit(cache=True, nogil=True)
@no_type_check
def cut_in_two(chunks, at, steps):
    """Make one list two: across its longest direction, then rounds of two-means.

    There must be room for a list and two chunks more. Entries that are all the same are cut in
    halves by age.
    """
    length = chunks.lengths[at]
    codes = np.empty((length, WORDS), np.uint32)
    take_apart(chunks, at, codes)
    places = np.empty((length, AXES), np.float32)
    for i in range(length):
        decode(codes[i], steps, places[i])
    sides = _sides(places)
    new = chunks.counts[LISTS]
    chunks.counts[LISTS] += 1
    chunks.lengths[new] = 0
    for side in range(2):
        each = new if side else at
        middle = np.zeros(AXES, np.float32)
        for i in range(length):
            if sides[i] == side:
                middle += places[i]
                append(chunks, each, codes[i])
        middle /= np.float32(chunks.lengths[each])
        code = np.empty(CENTROID_WORDS, np.uint32)
        store_centroid(middle, steps, code)
        write_code(code, chunks.centroids[each // CHUNK], each % CHUNK)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _sides(places):
    """0 or 1 for each place, never all the same."""
    length = len(places)
    mean = np.zeros(AXES, np.float32)
    for i in range(length):
        mean += places[i]
    mean /= np.float32(length)
    direction = places[0] - mean
    # The longest direction, by power iteration; a rough one will do.
    for _ in range(5):
        turned = np.zeros(AXES, np.float32)
        for i in range(length):
            along = np.float32(0)
            for axis in range(AXES):
                along += (places[i, axis] - mean[axis]) * direction[axis]
            for axis in range(AXES):
                turned[axis] += along * (places[i, axis] - mean[axis])
        size = np.sqrt((turned * turned).sum())
        if not size > 0:
            break
        direction = turned / size
    sides = np.empty(length, np.int8)
    level = (mean * direction).sum()
    for _ in range(_ROUNDS + 1):
        ones = 0
        for i in range(length):
            along = np.float32(0)
            for axis in range(AXES):
                along += places[i, axis] * direction[axis]
            sides[i] = along > level
            ones += sides[i]
        if ones == 0 or ones == length:
            sides[:] = 0
            sides[length // 2 :] = 1
            return sides
        one, other = np.zeros(AXES, np.float32), np.zeros(AXES, np.float32)
        for i in range(length):
            if sides[i]:
                one += places[i]
            else:
                other += places[i]
        one /= np.float32(ones)
        other /= np.float32(length - ones)
        direction = one - other
        level = (direction * (one + other)).sum() / np.float32(2)
    return sides
