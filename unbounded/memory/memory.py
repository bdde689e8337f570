"""(hidden state, next word) pairs, appended as they are read, and found again by their states."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final, no_type_check

import numba
import numpy as np

from unbounded.errors import MemoryFault
from unbounded.memory.index import Index
from unbounded.memory.nearest import Packed, unpack
from unbounded.memory.rows import Rows
from unbounded.memory.threads import in_parallel
from unbounded.states import part, under
from unbounded.types import Distances, Hidden, Ids, Positions

# Rows at a time that are looked at where they were found: with 1,024 neighbors a megabyte.
_ROWS = 64


@dataclass(frozen=True)
class Neighbors:
    """The entries nearest to each query: nearest first after `search`, in no order after `read`.

    `squared` is the squared Euclidean distance, `words` what came next there, `positions` the
    number of entries before it. After `read` a row that saw fewer entries than others has squared
    distances of infinity, words and positions of -1; after `search` none does.
    """

    squared: Distances
    words: Positions
    positions: Positions

    def in_order(self) -> "Neighbors":
        """The nearest first, of two as near the older."""
        order = np.lexsort((self.positions, self.squared), axis=1)
        return Neighbors(
            np.take_along_axis(self.squared, order, axis=1),
            np.take_along_axis(self.words, order, axis=1),
            np.take_along_axis(self.positions, order, axis=1),
        )


@final
class Memory:
    """An index of hidden states with the word that followed each.

    >>> from unbounded.memory.flat import Flat
    >>> memory = Memory(Flat(1))
    >>> memory.add(np.array([[0], [2]], np.float32), np.array([7, 8]))
    >>> memory.search(np.array([[3]], np.float32), k=4).words.tolist()
    [[8, 7]]
    >>> memory.read(np.array([[3], [3]], np.float32), np.array([9, 7]), k=4).words.tolist()
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
    def bytes(self) -> int:
        """What the index and the words take."""
        return self.index.bytes + self._words.bytes

    @property
    def bytes_per_entry(self) -> float:
        """Bytes over entries; 0 when there are none."""
        return self.bytes / len(self) if len(self) else 0.0

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        _check_pairs(keys, words)
        self.index.add(keys)
        self._words.append(words)
        self._words.keep_last(len(self.index))

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        squared, positions = self.index.search(queries, k)
        words = np.empty(positions.shape, np.int64)
        known, oldest = self._words.view, self.index.added - len(self._words)

        def part(start: int, stop: int) -> None:
            _gather(positions[start:stop], oldest, known, known[:0], words[start:stop])

        in_parallel(part, len(words))
        return Neighbors(squared, words, positions)

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time; rows are in no order.

        Step t is not shown its own word, nor any later one.
        """
        shape = len(keys), min(k, self.index.added + max(len(keys) - 1, 0))
        found = Neighbors(
            np.full(shape, np.inf, np.float32), np.full(shape, -1), np.full(shape, -1)
        )

        def look(first: int, some: Neighbors) -> None:
            rows = slice(first, first + len(some.squared)), slice(some.squared.shape[1])
            found.squared[rows] = some.squared
            found.words[rows] = some.words
            found.positions[rows] = some.positions

        self.read_by(keys, words, k, look)
        return found

    def read_by(
        self, keys: Hidden, words: Ids, k: int, look: Callable[[int, Neighbors], None]
    ) -> None:
        """`read`, some rows at a time: `look` hears, from several threads, which is the first.

        Whoever only counts what is found needs no room for it all, and that is several times as
        fast: new pages cost more than what is written on them.
        """
        _check_pairs(keys, words)
        known, oldest = self._words.view, self.index.added - len(self._words)

        def gather(first: int, packed: Packed, base: int) -> None:
            for start in range(0, len(packed), _ROWS):
                some = packed[start : start + _ROWS]
                found = Neighbors(
                    np.empty(some.shape, np.float32),
                    np.empty(some.shape, np.int32),
                    np.empty(some.shape, np.int64),
                )
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


def _check_pairs(keys: Hidden, words: Ids) -> None:
    if len(keys) != len(words):
        raise MemoryFault(f"{len(keys)} keys for {len(words)} words; give one word to each key")
    if len(words) and (words.min() < 0 or words.max() >= 2**31):
        raise MemoryFault(
            f"words from {words.min()} to {words.max()}; ids lie between 0 and {2**31 - 1}: "
            "encode unknown words first"
        )
