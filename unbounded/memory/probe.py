"""Searching lists of codes: which lists, which of their entries."""

from typing import no_type_check

import numba
import numpy as np

from unbounded.memory.chunks import LISTS, ask_centroids
from unbounded.memory.codes import POSITION, WORDS
from unbounded.memory.scan import CHUNK, GROUP, distances, fetch, keep
from unbounded.memory.select import INFINITY, rough_limit, select

AHEAD = 3
"""Chunks that are on their way from memory while one is looked at."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def choose(chunks, queries, offsets, scales, totals, wanted, chosen, used):
    """Which lists each query looks into: the nearest, until they held `wanted` entries.

    What they held is what they held when lists were last cut, so that the choice does not change
    in between. Returns False if `chosen` has too few columns for some query.
    """
    count = chunks.counts[LISTS]
    to_lists = np.empty((count + CHUNK - 1) // CHUNK * CHUNK, np.float32)
    most = min(chosen.shape[1], count)
    order = np.empty(most, np.uint64)
    for t in range(len(queries)):
        for first in range(0, count, CHUNK):
            chunk = chunks.centroids[first // CHUNK]
            ask_centroids(
                chunk, queries[t], offsets[t], scales[t], totals[t], to_lists[first : first + CHUNK]
            )
        _smallest(to_lists, count, most, order)
        held, used[t] = 0, 0
        while used[t] < most and held < wanted:
            chosen[t, used[t]] = order[used[t]] & np.uint64(0xFFFF_FFFF)
            held += chunks.settled[chosen[t, used[t]]]
            used[t] += 1
        if held < wanted and most < count:
            return False
    return True


@numba.njit(cache=True, nogil=True)
@no_type_check
def probe(chunks, queries, offsets, scales, start, stop, chosen, used, own, added, best):
    """The nearest entries of queries start to stop, packed, in no order, into rows of `best`.

    Query t looks into its chosen lists. Where there is an `own`, chunks of the block itself, it
    also sees the first t codes of it, as far as they go to one of those lists.
    """
    stamps = np.full(chunks.counts[LISTS], -1, np.int64)
    found = np.empty(CHUNK, np.float32)
    squared, places, visits = _room(CHUNK)
    near_bits, near_places = np.empty_like(places), np.empty_like(places)
    kept_bits, kept_places = np.empty_like(places), np.empty_like(places)
    own_places = np.empty(len(queries) if len(own) else 0, np.uint32)
    for t in range(start, stop):
        visited, n = 0, 0
        for i in range(used[t]):
            stamps[chosen[t, i]] = t
            visited += (chunks.lengths[chosen[t, i]] + CHUNK - 1) // CHUNK
        room = visited * CHUNK + (t if len(own) else 0) + CHUNK
        if room > len(squared):
            squared, places, visits = _room(2 * room)
            near_bits, near_places = np.empty_like(places), np.empty_like(places)
            kept_bits, kept_places = np.empty_like(places), np.empty_like(places)
        visited = 0
        for i in range(used[t]):
            chunk = chunks.heads[chosen[t, i]]
            for _ in range(0, chunks.lengths[chosen[t, i]], CHUNK):
                visits[visited] = chunk
                visited += 1
                chunk = chunks.next[chunk]
        total, visited = visited, 0
        for i in range(used[t]):
            length = chunks.lengths[chosen[t, i]]
            for first in range(0, length, CHUNK):
                if visited + AHEAD < total:
                    fetch(chunks.codes[visits[visited + AHEAD]])
                here = squared[visited * CHUNK : (visited + 1) * CHUNK]
                distances(chunks.codes[visits[visited]], queries[t], offsets[t], scales[t], here)
                # What lies beyond the last entry of a list is nothing.
                here[min(CHUNK, length - first) :] = np.inf
                visited += 1
            n += length
        slots = total * CHUNK
        if len(own):
            for first in range(0, t, CHUNK):
                last = min(first + CHUNK, t)
                asked = False
                for i in range(first, last):
                    if stamps[chosen[i, 0]] == t:
                        if not asked:
                            distances(own[first // CHUNK], queries[t], offsets[t], scales[t], found)
                            asked = True
                        squared[slots] = found[i - first]
                        own_places[slots - total * CHUNK] = added + i
                        slots += 1
                        n += 1
        k = min(best.shape[1], n)
        bits = squared.view(np.uint32)
        limit = rough_limit(bits, slots, k)
        near = keep(bits, places, slots, np.uint32(0), limit, near_bits, near_places)
        if near < k:
            near = keep(bits, places, slots, np.uint32(0), INFINITY, near_bits, near_places)
        _locate(near_places, near, chunks, visits, total, own_places)
        select(near_bits, near_places, near, kept_bits, kept_places, best[t])


@numba.njit(cache=True, nogil=True)
@no_type_check
def _room(slots):
    return (
        np.empty(slots, np.float32),
        np.arange(slots).astype(np.uint32),
        np.empty(slots // CHUNK, np.int32),
    )


@numba.njit(cache=True, nogil=True)
@no_type_check
def _smallest(values, count, wanted, order):
    """The `wanted` smallest of the first `count` values, packed with their places, in order."""
    bits = values.view(np.uint32)
    kept = 0
    worst = np.uint32(0xFFFF_FFFF)
    for i in range(count):
        if bits[i] < worst or kept < wanted:
            packed = (np.uint64(bits[i]) << np.uint64(32)) | np.uint64(i)
            if kept < wanted:
                kept += 1
            place = kept - 1
            while place > 0 and order[place - 1] > packed:
                order[place] = order[place - 1]
                place -= 1
            order[place] = packed
            if kept == wanted:
                worst = np.uint32(order[kept - 1] >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _locate(places, n, chunks, visits, total, own_places):
    """Turn places of the scan into the positions of the entries that were there."""
    for i in range(n):
        visit, slot = places[i] // np.uint32(CHUNK), places[i] % np.uint32(CHUNK)
        if visit < total:
            group, lane = slot // np.uint32(GROUP), slot % np.uint32(GROUP)
            places[i] = chunks.codes[visits[visit], (group * WORDS + POSITION) * GROUP + lane]
        else:
            places[i] = own_places[places[i] - total * CHUNK]
