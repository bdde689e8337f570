"""(hidden state, next word) pairs, appended as they are read, and found again by their states."""

from collections.abc import Callable, Mapping, Sequence
from typing import final, no_type_check

import numba
import numpy as np

from unbounded.errors import MemoryFault
from unbounded.memory.index import Index, IndexEvent, unpacking
from unbounded.memory.nearest import Packed, unpack
from unbounded.memory.pairs import Neighbors, Pairs, check_pairs
from unbounded.memory.rows import Rows
from unbounded.states import part, under
from unbounded.types import Hidden, Ids

# Neighbors at a time that are looked at where they were found: a megabyte of them.
_LOOKED_AT = 65_536


@final
class Memory(Pairs):
    """An index of hidden states with the word that followed each.

    >>> from unbounded.memory.flat import Flat
    >>> memory = Memory(Flat(1))
    >>> memory.add(np.array([[0], [2]], np.float32), np.array([7, 8]))
    >>> memory.search(np.array([[3]], np.float32), k=4).words.tolist()
    [[8, 7]]
    >>> found = memory.read(np.array([[3], [3]], np.float32), np.array([9, 7]), k=4)
    >>> found.in_order().words.tolist()
    [[8, 7, -1], [9, 8, 7]]
    """

    def __init__(self, index: Index) -> None:
        if index.added:
            raise MemoryFault(
                f"the index holds {index.added} keys whose words are unknown; a memory starts "
                "with an empty index, or with load()"
            )
        self.index = index
        # Coded keys grow by little too, so that an entry is at most 80 bytes all in.
        self._words = Rows(np.empty(0, np.int32), spare=8)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._words.view

    @property
    def bytes(self) -> int:
        """What the index and the words take."""
        return self.index.bytes + self._words.bytes

    @property
    def reach(self) -> int | None:
        """How many of the last pairs a search sees; None is all of them."""
        return self.index.reach

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return self.index.added

    @property
    def events(self) -> Sequence[IndexEvent]:
        """What the index did to itself."""
        return self.index.events

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        check_pairs(keys, words)
        self.index.add(keys)
        self._words.append(words)
        self._words.keep_last(len(self.index))

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        found = _room_for(len(queries), min(k, len(self)), np.int64)
        known, oldest = self._words.view, self.index.added - len(self._words)
        write = unpacking(found.squared, found.positions, ordered=True)

        def gather(first: int, packed: Packed, base: int) -> None:
            write(first, packed, base)
            rows = slice(first, first + len(packed))
            _gather(found.positions[rows], oldest, known, known[:0], found.words[rows])

        self.index.search_by(queries, k, gather)
        return found

    def read_by(
        self, keys: Hidden, words: Ids, k: int, look: Callable[[int, Neighbors], None]
    ) -> None:
        """`read`, some rows at a time: `look` hears, from several threads, which is the first.

        Whoever only counts what is found needs no room for it all, and that is several times as
        fast: new pages cost more than what is written on them.
        """
        check_pairs(keys, words)
        known, oldest = self._words.view, self.index.added - len(self._words)

        def gather(first: int, packed: Packed, base: int) -> None:
            rows = max(_LOOKED_AT // max(packed.shape[1], 1), 1)
            for start in range(0, len(packed), rows):
                some = packed[start : start + rows]
                found = _room_for(*some.shape)
                unpack(some, base, found.squared, found.positions)
                _gather(found.positions, oldest, known, words, found.words)
                look(first + start, found)

        self.index.read_by(keys, k, gather)
        self._words.append(words)
        self._words.keep_last(len(self.index))

    def state(self) -> dict[str, np.ndarray]:
        """Everything that was read, as arrays."""
        return {"words": self._words.view.copy(), **under("index", self.index.state())}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become the memory that wrote the state; only with an index of the same settings."""
        self.index.load(part("index", state))
        if len(state["words"]) != len(self.index):
            raise MemoryFault(
                f"the state holds {len(state['words'])} words for {len(self.index)} keys; "
                "it is damaged: restore an older one"
            )
        self._words.restore(state["words"])

    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come to the index since this was last called; None if that is not known."""
        return self.index.growth()

    def again(self, words: Ids) -> None:
        """Words whose keys come with `grow` and `settle`."""
        self._words.append(words)

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add what has come."""
        self.index.grow(growth)

    def rest(self) -> dict[str, np.ndarray]:
        """All but the growth and the words."""
        return self.index.rest()

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""
        self.index.settle(rest)
        self._words.keep_last(len(self.index))


def _room_for(rows: int, k: int, words: type[np.int32 | np.int64] = np.int32) -> Neighbors:
    """Room for neighbors; words that are only counted may be narrow."""
    shape = rows, max(k, 0)
    return Neighbors(np.empty(shape, np.float32), np.empty(shape, words), np.empty(shape, np.int64))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _gather(positions, oldest, known, new, words):
    """The word at each position, known or new; -1 where there is none."""
    for t in range(positions.shape[0]):
        for i in range(positions.shape[1]):
            at = positions[t, i] - oldest
            if positions[t, i] < 0:
                words[t, i] = -1
            else:
                words[t, i] = known[at] if at < len(known) else new[at - len(known)]
