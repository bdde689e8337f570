"""(hidden state, next word) pairs, appended as they are read, and found again by their states."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, no_type_check

import numba
import numpy as np

from unbounded.errors import MemoryFault
from unbounded.memory.index import Index
from unbounded.memory.rows import Rows
from unbounded.memory.threads import in_parallel
from unbounded.states import part, under
from unbounded.types import Distances, Hidden, Ids, Positions


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
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._words.view

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
        oldest = self.index.added - len(self._words)
        return Neighbors(squared, self._words_from(oldest, positions), positions)

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time; rows are in no order.

        Step t is not shown its own word, nor any later one.
        """
        _check_pairs(keys, words)
        before = self.index.added - len(self._words)
        squared, positions = self.index.read(keys, k)
        self._words.append(words)
        found = self._words_from(before, positions)
        self._words.keep_last(len(self.index))
        return Neighbors(squared, found, positions)

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

    def _words_from(self, oldest: int, positions: Positions) -> Positions:
        """The words at these positions, where the first word kept is at position `oldest`."""
        words = np.empty(positions.shape, np.int64)

        def part(start: int, stop: int) -> None:
            rows = slice(start, stop)
            _gather(positions[rows].ravel(), oldest, self._words.view, words[rows].ravel())

        in_parallel(part, len(positions))
        return words


@numba.njit(cache=True, nogil=True)
@no_type_check
def _gather(positions, oldest, known, words):
    """The word at each position; -1 where there is none."""
    for i in range(len(positions)):
        words[i] = -1 if positions[i] < 0 else known[positions[i] - oldest]


def _check_pairs(keys: Hidden, words: Ids) -> None:
    if len(keys) != len(words):
        raise MemoryFault(f"{len(keys)} keys for {len(words)} words; give one word to each key")
    if len(words) and (words.min() < 0 or words.max() >= 2**31):
        raise MemoryFault(
            f"words from {words.min()} to {words.max()}; ids lie between 0 and {2**31 - 1}: "
            "encode unknown words first"
        )
