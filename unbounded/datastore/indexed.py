"""(hidden state, next word) pairs, appended as they are read, and found again by their states."""

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from unbounded._native import words_at
from unbounded.datastore.datastore import Datastore, Neighbors, check_pairs
from unbounded.datastore.growable_rows import GrowableRows
from unbounded.datastore.index import Index, IndexEvent
from unbounded.datastore.votes import Votes
from unbounded.errors import MemoryFault
from unbounded.states import part, under
from unbounded.types import Hidden, Ids, Table


@final
class IndexedDatastore(Datastore):
    """An index of hidden states with the word that followed each.

    >>> from unbounded.datastore.flat import Flat
    >>> memory = IndexedDatastore(Flat(1))
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
        self._words = GrowableRows(np.empty(0, np.int32), spare=8)

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
    def window(self) -> int | None:
        """How many of the last pairs a search sees; None is all of them."""
        return self.index.window

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
        self.index.add(keys, words)
        self._words.append(words)
        self._words.keep_last(len(self.index))

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        squared, positions = self.index.search(queries, k)
        oldest = self.index.added - len(self._words)
        return Neighbors(squared, words_at(self._words.view, positions, oldest), positions)

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        check_pairs(keys, words)
        oldest = self.index.added - len(self._words)
        squared, positions = self.index.read(keys, k)
        self._words.append(words)
        found = words_at(self._words.view, positions, oldest)
        self._words.keep_last(len(self.index))
        return Neighbors(squared, found, positions)

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Votes are counted where neighbors are found: there is no room to be made for them.
        """
        check_pairs(keys, words)
        shares = np.empty((len(words), votes.kernels))
        start = 0
        while start < len(words):
            piece = slice(start, start + self.index.room)
            shares[piece] = self.index.score(keys[piece], words[piece], self.words, k, votes)
            self._words.append(words[piece])
            self._words.keep_last(len(self.index))
            start = piece.stop
        return shares

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        check_pairs(queries, words)
        return self.index.vote(queries, words, self.words, k, votes)

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
