"""Codes in lists of near ones, which are cut in two as they grow: no training, no pause."""

import threading
from collections.abc import Mapping
from typing import final

import numpy as np
from jaxtyping import Int32

from unbounded.memory.chunks import (
    LISTS,
    TAKEN,
    Chunks,
    append_all,
    cut_in_two,
    nearest_list,
)
from unbounded.memory.codes import CENTROID_WORDS, WORDS, Coded, Coder
from unbounded.memory.index import Look
from unbounded.memory.probe import choose, nearest, own_entries, probe
from unbounded.memory.scan import CHUNK
from unbounded.memory.threads import in_parallel
from unbounded.room import Room

LOOKED_AT = 8
"""Entries looked at for each neighbor asked for: twice as many are worth no more than to ask for
an eighth as many neighbors more, and cost more."""

FEWEST = 1024
"""Entries looked at for however few neighbors: one list alone often misses the very nearest."""

# A list is not cut below this.
_SHORTEST = 256

# Entries kept for each neighbor wanted, before the nearest are selected. A guess has it that 1.7
# will come; of 100 queries some 5 come to 2 and drop those that are too many.
_ROOM = 2

# Queries whose neighbors are shown at a time: half a megabyte, which is still near when looked at.
_SHOWN = 64

# Queries that are searched together at least: the more, the more of them share a list. Beyond two
# million entries one in so many: there every query has lists of its own, and to take these from
# memory takes longer than to look at them, unless enough queries wait for each.
_TOGETHER = 512
_SHARED = 4096

# Lists are cut less often in a large memory, for a block ends where lists are cut: from so many
# times the usual stretch on it is twice as long, from twice as many on four times.
_STRETCHES = 1024
_LONGEST = 4

_kept = threading.local()

# Chunks that are kept free, so that room is not made for each.
_SPARE = 64


Assigned = Int32[np.ndarray, " n"]


@final
class Lists:
    """Entries (code, position) in lists; the centroid of a list is itself a code.

    A search looks into the lists with the nearest centroids until they hold `LOOKED_AT` times as
    many entries as it wants, and at least `FEWEST`. A list that has outgrown 0.7 √entries is cut in
    two, so lists follow the keys wherever these drift, and the longest pause is that of some lists
    being cut. Lists are cut each time `settle` entries have come, in large memories up to four
    times as many, and at no other time: between, a search looks into the same lists however the
    stream is cut into blocks.
    """

    def __init__(self, coder: Coder, settle: int) -> None:
        self.coder = coder
        self._settle_every = settle
        self.entries = 0
        # Blocks that have come since somebody asked, once somebody has.
        self._came: list[tuple[np.ndarray, np.ndarray]] | None = None
        # Codes and what follows each chunk, once they have grown.
        self._room: tuple[Room, Room] | None = None
        self._chunks = Chunks(
            np.empty((0, WORDS * CHUNK), np.uint32),
            np.empty(0, np.int32),
            np.full(CHUNK, -1, np.int32),
            np.full(CHUNK, -1, np.int32),
            np.zeros(CHUNK, np.int64),
            np.zeros(CHUNK, np.int64),
            np.zeros((1, CENTROID_WORDS * CHUNK), np.uint32),
            np.array([1, 0, -1]),
        )

    def __len__(self) -> int:
        return self.entries

    @property
    def count(self) -> int:
        """How many lists there are."""
        return int(self._chunks.counts[LISTS])

    @property
    def bytes(self) -> int:
        """All that is allocated, room for growth included."""
        return sum(array.nbytes for array in self._chunks) + self.coder.axes.nbytes

    @property
    def room(self) -> int:
        """How many entries may come until lists are cut."""
        stretch = self._stretch
        return stretch - self.entries % stretch

    @property
    def _stretch(self) -> int:
        """How many entries come between one cutting and the next, as many as there are now."""
        doublings = (self.entries // (_STRETCHES * self._settle_every)).bit_length()
        return self._settle_every * min(1 << doublings, _LONGEST)

    def find(self, coded: Coded, k: int, own_past: bool, look: Look) -> Assigned:
        """Show `look` the nearest entries of each query, in no order; the list of each query.

        With `own_past` a query also sees the queries before it, as if they had been added.
        """
        chosen, used = self._choose(coded, min(max(LOOKED_AT * k, FEWEST), self.entries))
        lists = chosen[:, 0]
        own = own_entries(self._chunks, coded.codes, lists if own_past else lists[:0], self.entries)

        def part(start: int, stop: int) -> None:
            bits, positions, best = _scratch(stop - start, k)
            asked = (self._chunks, own, coded.queries, coded.offsets, coded.scales)
            kept, seen = probe(*asked, start, stop, chosen, used, k, bits, positions)
            for first in range(start, stop, _SHOWN):
                some = best[: stop - first]
                nearest(*asked, start, chosen, used, kept, seen, first, some)
                look(first, some, 0)

        in_parallel(part, len(lists), fewest=max(_TOGETHER, self.entries // _SHARED))
        return lists

    def _choose(self, coded: Coded, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """The lists that each query looks into, nearest first, and how many."""
        # Twice as many as it should take. Where lists are short it takes more, and only those
        # queries are asked again: in a block of a large memory there always is one.
        likely = min(self.count, 4 + 2 * wanted * self.count // self.entries)
        chosen, used = self._choose_from(coded, wanted, likely)
        again = np.flatnonzero(used < 0)
        if len(again):
            most = int(-used[again].min())
            chosen = np.pad(chosen, ((0, 0), (0, most - likely)))
            chosen[again], used[again] = self._choose_from(coded[again], wanted, most)
        return chosen, used

    def _choose_from(self, coded: Coded, wanted: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        n = len(coded.codes)
        chosen, used = np.empty((n, most), np.int32), np.empty(n, np.int32)

        def part(start: int, stop: int) -> None:
            rows = coded[start:stop]
            choose(
                self._chunks,
                rows.queries,
                rows.offsets,
                rows.scales,
                rows.totals,
                wanted,
                chosen[start:stop],
                used[start:stop],
            )

        in_parallel(part, n)
        return chosen, used

    def add(self, coded: Coded) -> None:
        """Append entries, cutting lists wherever that is due."""
        start = 0
        while start < len(coded.codes):
            piece = coded[start : start + self.room]
            self.add_block(piece, self._nearest(piece))
            start += len(piece.codes)

    def add_block(self, coded: Coded, lists: Assigned) -> None:
        """Append a block for which there is room, then cut lists if that is due."""
        self._add_codes(coded.codes, lists)
        if self._came is not None:
            self._came.append((coded.codes.copy(), lists.copy()))

    def _add_codes(self, codes: np.ndarray, lists: Assigned) -> None:
        self._reserve(self._chunks_for(lists))
        append_all(self._chunks, lists, codes, self.entries)
        due = self.room
        self.entries += len(lists)
        if len(lists) == due:
            self._settle()

    def growth(self) -> dict[str, np.ndarray] | None:
        """The codes since this was last called, and the list of each; None the first time."""
        came, self._came = self._came, []
        if came is None:
            return None
        codes = [np.empty((0, WORDS), np.uint32), *(codes for codes, _ in came)]
        lists = [np.empty(0, np.int32), *(lists for _, lists in came)]
        return {"codes": np.concatenate(codes), "lists": np.concatenate(lists)}

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add codes to their lists, which are cut where they were cut before."""
        codes, lists, start = growth["codes"], growth["lists"], 0
        # About what it will take, so that the codes are moved once and not every so often.
        new = max(int(lists.max(initial=0)) + 1 - self.count, 0)
        self._reserve(len(lists) // CHUNK + 2 * new)
        while start < len(lists):
            piece = slice(start, start + self.room)
            self._add_codes(codes[piece], lists[piece])
            start = min(piece.stop, len(lists))
        if self._came is not None:
            self._came = []

    def _nearest(self, coded: Coded) -> np.ndarray:
        lists = np.empty(len(coded.codes), np.int32)

        def part(start: int, stop: int) -> None:
            rows = coded[start:stop]
            nearest_list(
                self._chunks,
                rows.queries,
                rows.offsets,
                rows.scales,
                rows.totals,
                lists[start:stop],
            )

        in_parallel(part, len(lists))
        return lists

    def _settle(self) -> None:
        """Cut every list that has grown too long."""
        longest = max(_SHORTEST, int(0.7 * self.entries**0.5))
        long = np.flatnonzero(self._chunks.lengths > longest).tolist()
        while long:
            # Cut in two, a list ends in one chunk more that is not full.
            self._reserve(1)
            at, new = long.pop(), self.count
            cut_in_two(self._chunks, at, self.coder.steps)
            long += [each for each in (at, new) if self._chunks.lengths[each] > longest]
        self._chunks.settled[:] = self._chunks.lengths

    def _chunks_for(self, lists: np.ndarray) -> int:
        """How many chunks more it takes to append an entry to each of these lists."""
        lengths = self._chunks.lengths
        came = np.bincount(lists, minlength=len(lengths))
        return int((-(-(lengths + came) // CHUNK) + -lengths // CHUNK).sum())

    def _reserve(self, new: int) -> None:
        """Room for so many chunks more, and for a list more."""
        chunks = self._chunks
        needed = int(chunks.counts[TAKEN]) + new
        if needed > len(chunks.next):
            if self._room is None:
                self._room = Room(chunks.codes), Room(chunks.next)
            codes, following = (room.first(needed + _SPARE) for room in self._room)
            chunks = chunks._replace(codes=codes, next=following)
        if self.count == len(chunks.heads):
            size = self.count + max(CHUNK, self.count // 16 // CHUNK * CHUNK)
            chunks = chunks._replace(
                heads=_longer(chunks.heads, size),
                tails=_longer(chunks.tails, size),
                lengths=_longer(chunks.lengths, size),
                settled=_longer(chunks.settled, size),
                centroids=_longer(chunks.centroids, size // CHUNK),
            )
        self._chunks = chunks

    def state(self) -> dict[str, np.ndarray]:
        """All entries, as arrays."""
        chunks, taken = self._chunks, int(self._chunks.counts[TAKEN])
        kept = {
            name: (array[:taken] if name in ("codes", "next") else array).copy()
            for name, array in zip(Chunks._fields, chunks, strict=True)
        }
        return kept | self.coder.state()

    @staticmethod
    def restored(state: Mapping[str, np.ndarray], settle: int) -> "Lists":
        """The lists that wrote the state, whose arrays are kept."""
        lists = Lists(Coder.restored(state), settle)
        kept = (np.require(state[name], requirements=["C", "W"]) for name in Chunks._fields)
        lists._chunks = Chunks(*kept)
        lists.entries = int(lists._chunks.lengths.sum())
        return lists


def _scratch(rows: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room to work in, kept for the next search of this thread: new pages would cost more.

    On large pages: each chunk that is looked at adds to some query's row, which lies anywhere.
    """
    columns, shown = _ROOM * k + CHUNK, min(rows, _SHOWN)
    kept: Room | None = getattr(_kept, "room", None)
    if kept is None:
        kept = _kept.room = Room(np.empty(0, np.uint64))
    room = kept.first(rows * columns + shown * k)
    best, rest = room[: shown * k].reshape(shown, k), room[shown * k :].view(np.uint32)
    bits, positions = rest[: 2 * rows * columns].reshape(2, rows, columns)
    return bits, positions, best


def _longer(rows: np.ndarray, size: int) -> np.ndarray:
    longer = np.empty((size, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    longer[len(rows) :] = 0
    return longer
