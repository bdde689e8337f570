"""Searching lists of codes: which lists, which of their entries.

A block of queries is searched list by list, not query by query: each list is taken from memory once
for all queries that look into it, and unpacked once for every four of them.
"""

from typing import NamedTuple, no_type_check

import numba
import numpy as np
from jaxtyping import Float32, Int8, Int32, Int64, UInt32

from unbounded.memory.chunks import LISTS, ask_centroids, room_for_centroids, write_code
from unbounded.memory.codes import AXES, POSITION, WORDS
from unbounded.memory.keep import keep, keep_chunk
from unbounded.memory.scan import CHUNK, TILE, distances
from unbounded.memory.select import INFINITY, kth, rough_limit, select


@numba.njit(cache=True, nogil=True)
@no_type_check
def choose(chunks, queries, offsets, scales, totals, wanted, chosen, used):
    """Which lists each query looks into: the nearest, until they held `wanted` entries.

    What they held is what they held when lists were last cut, so that the choice does not change
    in between. The very nearest is the first. A query that needs more lists than `chosen` has
    columns is left to be asked again: it has used minus as many as it needs.
    """
    count = chunks.counts[LISTS]
    to_lists = room_for_centroids(chunks)
    numbers = np.arange(count).astype(np.uint32)
    room, taken = np.empty((2, count), np.uint32), np.empty((2, count), np.uint64)
    for first in range(0, len(queries), TILE):
        many = ask_centroids(chunks, queries, offsets, scales, totals, first, to_lists)
        for j in range(many):
            t = first + j
            bits = to_lists[j].view(np.uint32)
            most = min(chosen.shape[1], count)
            # Those that are near by a sample; where they hold too few, all.
            limit = rough_limit(bits, count, most)
            kept = keep(bits, numbers, count, np.uint32(0), limit, room[0], room[1])
            needed = _take_nearest(room[0], room[1], kept, chunks.settled, wanted, taken)
            if needed < 0:
                needed = _take_nearest(bits, numbers, count, chunks.settled, wanted, taken)
            if needed > chosen.shape[1]:
                used[t] = -needed
            else:
                used[t] = needed
                for i in range(needed):
                    chosen[t, i] = taken[0, i] & np.uint64(0xFFFF_FFFF)


_BINS = 64


@numba.njit(cache=True, nogil=True)
@no_type_check
def _take_nearest(bits, numbers, kept, settled, wanted, taken):
    """Pack the nearest lists that held `wanted` entries, the very nearest first; how many it takes.

    Of two as near the older. Minus one if together they held fewer, unless these are all lists. By
    a histogram of what lists of about the same distance held: only among those where it is enough
    is there anything to sort.
    """
    low, high = np.uint32(0xFFFF_FFFF), np.uint32(0)
    for i in range(kept):
        low, high = min(low, bits[i]), max(high, bits[i])
    shift = np.uint32(0)
    while kept and (high - low) >> shift >= _BINS:
        shift += np.uint32(1)
    held = np.zeros(_BINS, np.int64)
    for i in range(kept):
        held[(bits[i] - low) >> shift] += settled[numbers[i]]
    last, so_far = 0, 0
    while last < _BINS and so_far + held[last] < wanted:
        so_far += held[last]
        last += 1
    if last == _BINS and kept < taken.shape[1]:
        return -1
    whole, parted = 0, 0
    for i in range(kept):
        packed = (np.uint64(bits[i]) << np.uint64(32)) | np.uint64(numbers[i])
        if (bits[i] - low) >> shift < last:
            taken[0, whole] = packed
            whole += 1
        elif (bits[i] - low) >> shift == last:
            taken[1, parted] = packed
            parted += 1
    taken[1, :parted].sort()
    for i in range(parted):
        if so_far >= wanted:
            break
        taken[0, whole] = taken[1, i]
        so_far += settled[taken[1, i] & np.uint64(0xFFFF_FFFF)]
        whole += 1
    nearest = 0
    for i in range(whole):
        if taken[0, i] < taken[0, nearest]:
            nearest = i
    taken[0, 0], taken[0, nearest] = taken[0, nearest], taken[0, 0]
    return whole


class Own(NamedTuple):
    """A block's entries by the lists that they will go to, in the order of the block."""

    codes: UInt32[np.ndarray, "chunks 1088"]
    heads: Int32[np.ndarray, " lists"]
    """The first chunk of each list; the others follow it."""
    starts: Int64[np.ndarray, " lists_and_end"]
    """Where the entries of each list begin in `order`."""
    order: Int64[np.ndarray, " n"]
    """The entries' places in the block, list by list."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def own_entries(chunks, codes, lists, first):
    """Sort a block's codes by their lists; their positions count up from `first`."""
    count = chunks.counts[LISTS]
    starts, heads = np.zeros(count + 1, np.int64), np.zeros(count, np.int32)
    for at in lists:
        starts[at + 1] += 1
    taken = 0
    for at in range(count):
        heads[at] = taken
        taken += (starts[at + 1] + CHUNK - 1) // CHUNK
        starts[at + 1] += starts[at]
    sorted_codes, order = (
        np.zeros((taken, WORDS * CHUNK), np.uint32),
        np.empty(len(lists), np.int64),
    )
    ends = starts[:-1].copy()
    for i in range(len(lists)):
        at = lists[i]
        codes[i, POSITION] = first + i
        place = ends[at] - starts[at]
        write_code(codes[i], sorted_codes[heads[at] + place // CHUNK], place % CHUNK)
        order[ends[at]] = i
        ends[at] += 1
    return Own(sorted_codes, heads, starts, order)


class Tile(NamedTuple):
    """Up to four queries side by side, and their distances to a chunk."""

    asked: Int8[np.ndarray, "4 120"]
    offsets: Float32[np.ndarray, " 4"]
    scales: Float32[np.ndarray, " 4"]
    out: Float32[np.ndarray, "4 64"]


class Kept(NamedTuple):
    """What each query of a part has kept so far: distances as bits, positions, and how many.

    Where there is no room for a chunk more, all but the nearest are dropped and the limit with
    them, so that there must be room for a chunk and some more beyond those that are wanted.
    """

    bits: UInt32[np.ndarray, "n room"]
    positions: UInt32[np.ndarray, "n room"]
    counts: Int64[np.ndarray, " n"]
    limits: UInt32[np.ndarray, " n"]


@numba.njit(cache=True, nogil=True)
@no_type_check
def probe(chunks, own, queries, offsets, scales, start, stop, chosen, used, k, bits, positions):
    """Have queries start to stop keep their k nearest and some more, as far as a guess is right.

    Query t looks into its chosen lists, and at the block's own entries before t that will go there.
    List by list, all queries keep what is nearer than their limits, in rows of `bits` and
    `positions`. Returns how many each kept, and how many entries it sees.
    """
    n = stop - start
    kept = Kept(bits[:n], positions[:n], np.zeros(n, np.int64), np.empty(n, np.uint32))
    visits, seen = _visits_by_list(chunks, own, chosen, used, start, stop)
    if n:
        asked = queries, offsets, scales
        _guess(chunks, *asked, visits, start, k, seen, bits[:n], kept.limits)
        _look(chunks, own, *asked, visits, start, k, kept)
    return kept, seen


@numba.njit(cache=True, nogil=True)
@no_type_check
def nearest(chunks, own, queries, offsets, scales, start, chosen, used, kept, seen, first, best):
    """The nearest of what queries `first` and on have kept, packed, in no order, a row each.

    A query whose limit was too near looks again. `start` is the query of the first row kept.
    """
    bits, positions, counts, _ = kept
    room = np.empty((2, bits.shape[1]), np.uint32)
    for row in range(len(best)):
        t = first + row
        i = t - start
        if counts[i] >= min(best.shape[1], seen[i]):
            select(bits[i], positions[i], counts[i], room[0], room[1], best[row])
        else:
            _look_again(chunks, own, queries, offsets, scales, chosen, used, t, seen[i], best[row])


@numba.njit(cache=True, nogil=True)
@no_type_check
def _look_again(chunks, own, queries, offsets, scales, chosen, used, t, seen, best):
    """One query, with room for all that it sees."""
    visits, _ = _visits_by_list(chunks, own, chosen, used, t, t + 1)
    kept = Kept(
        np.empty((1, seen + CHUNK), np.uint32),
        np.empty((1, seen + CHUNK), np.uint32),
        np.zeros(1, np.int64),
        np.full(1, INFINITY),
    )
    _look(chunks, own, queries, offsets, scales, visits, t, len(best), kept)
    room = np.empty_like(kept.bits)
    select(kept.bits[0], kept.positions[0], kept.counts[0], room[0], np.empty_like(room[0]), best)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _visits_by_list(chunks, own, chosen, used, start, stop):
    """Each list and query that looks into it, list by list; and how many entries a query sees."""
    ends = np.zeros(chunks.counts[LISTS] + 1, np.int64)
    seen = np.zeros(stop - start, np.int64)
    for t in range(start, stop):
        for i in range(used[t]):
            at = chosen[t, i]
            ends[at + 1] += 1
            seen[t - start] += chunks.lengths[at] + _earlier(own.starts, own.order, at, t)
    for at in range(chunks.counts[LISTS]):
        ends[at + 1] += ends[at]
    visits = np.empty((ends[-1], 2), np.int64)
    for t in range(start, stop):
        for i in range(used[t]):
            visit = visits[ends[chosen[t, i]]]
            visit[0], visit[1] = chosen[t, i], t
            ends[chosen[t, i]] += 1
    return visits, seen


@numba.njit(cache=True, nogil=True)
@no_type_check
def _tile():
    return Tile(
        np.zeros((TILE, AXES), np.int8),
        np.zeros(TILE, np.float32),
        np.zeros(TILE, np.float32),
        np.empty((TILE, CHUNK), np.float32),
    )


@numba.njit(cache=True, nogil=True)
@no_type_check
def _take(visits, at, queries, offsets, scales, tile):
    """Put the next queries that look into the same list side by side; returns how many."""
    many = 0
    while many < TILE and at + many < len(visits) and visits[at + many, 0] == visits[at, 0]:
        t = visits[at + many, 1]
        tile.asked[many] = queries[t]
        tile.offsets[many], tile.scales[many] = offsets[t], scales[t]
        many += 1
    return many


# About so many entries a limit is guessed from.
_SAMPLE = 1024


@numba.njit(cache=True, nogil=True)
@no_type_check
def _guess(chunks, queries, offsets, scales, visits, start, k, seen, room, limits):
    """A distance within which each query probably has k entries, and not many more.

    From some of the first entries of each list; infinite for a query that may keep everything.
    What is in `room` is lost.
    """
    codes, heads, lengths = chunks.codes, chunks.heads, chunks.lengths
    visited, sampled = np.zeros(len(limits), np.int64), np.zeros(len(limits), np.int64)
    for at in range(len(visits)):
        visited[visits[at, 1] - start] += 1
    samples = room if room.shape[1] >= _SAMPLE else np.empty((len(limits), _SAMPLE), np.uint32)
    tile = _tile()
    asked, tile_offsets, tile_scales, out = tile
    out_bits = out.view(np.uint32)
    at = 0
    while at < len(visits):
        which, many = visits[at, 0], _take(visits, at, queries, offsets, scales, tile)
        next_list = visits[min(at + many, len(visits) - 1), 0]
        distances(
            codes, heads[which], heads[next_list], asked, tile_offsets, tile_scales, many, out
        )
        for j in range(many):
            i = visits[at + j, 1] - start
            # One query that looks into thousands of lists must not make room for all of them.
            few = min(CHUNK, max(_SAMPLE // visited[i], 1), lengths[which])
            few = min(few, samples.shape[1] - sampled[i])
            for slot in range(few):
                samples[i, sampled[i] + slot] = out_bits[j, slot]
            sampled[i] += few
        at += many
    for i in range(len(limits)):
        limits[i] = INFINITY
        if seen[i] > room.shape[1] - CHUNK:
            share = k * sampled[i] // seen[i]
            limits[i] = kth(samples[i], sampled[i], share + share // 2 + 16)[1]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _look(chunks, own, queries, offsets, scales, visits, start, k, kept):
    """Every visited list is gone through once for each tile of its queries.

    Arrays are named here and not in the loops, where each mention of one that is part of a tuple
    would be counted by whoever looks after memory: that took longer than the search.
    """
    codes, following, heads, lengths = chunks.codes, chunks.next, chunks.heads, chunks.lengths
    own_codes, own_heads, own_starts, order = own
    bits, positions, counts, limits = kept
    tile = _tile()
    asked, tile_offsets, tile_scales, out = tile
    most = bits.shape[1] - CHUNK
    best = np.empty(k, np.uint64)
    at = 0
    while at < len(visits):
        which, many = visits[at, 0], _take(visits, at, queries, offsets, scales, tile)
        chunk, length = heads[which], lengths[which]
        next_head = heads[visits[min(at + many, len(visits) - 1), 0]]
        for first in range(0, length, CHUNK):
            behind = following[chunk] if following[chunk] >= 0 else next_head
            distances(codes, chunk, behind, asked, tile_offsets, tile_scales, many, out)
            for j in range(many):
                i = visits[at + j, 1] - start
                if counts[i] > most:
                    _narrow(bits, positions, counts, limits, i, best)
                counts[i] += keep_chunk(
                    *(out, j, codes, chunk, length - first, limits[i]),
                    *(bits, positions, i, counts[i]),
                )
            chunk = following[chunk]
        for first in range(0, own_starts[which + 1] - own_starts[which], CHUNK):
            chunk = own_heads[which] + first // CHUNK
            distances(own_codes, chunk, chunk, asked, tile_offsets, tile_scales, many, out)
            for j in range(many):
                i = visits[at + j, 1] - start
                earlier = _earlier(own_starts, order, which, visits[at + j, 1])
                if counts[i] > most:
                    _narrow(bits, positions, counts, limits, i, best)
                counts[i] += keep_chunk(
                    *(out, j, own_codes, chunk, earlier - first, limits[i]),
                    *(bits, positions, i, counts[i]),
                )
        at += many


@numba.njit(cache=True, nogil=True)
@no_type_check
def _narrow(bits, positions, counts, limits, i, best):
    """Keep the nearest only of what a query has kept, and from now on nothing further than these.

    What is as far as the last of them may still come and be older.
    """
    room = np.empty((2, counts[i]), np.uint32)
    select(bits[i], positions[i], counts[i], room[0], room[1], best)
    furthest = np.uint32(0)
    for slot in range(len(best)):
        bits[i, slot] = np.uint32(best[slot] >> np.uint64(32))
        positions[i, slot] = np.uint32(best[slot] & np.uint64(0xFFFF_FFFF))
        furthest = max(furthest, bits[i, slot])
    counts[i], limits[i] = len(best), furthest + np.uint32(1)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _earlier(starts, order, at, t):
    """How many of the block's own that go to a list came before query t."""
    low, high = starts[at], starts[at + 1]
    while low < high:
        middle = (low + high) // 2
        if order[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low - starts[at]
