"""The contract of every memory of (hidden state, next word) pairs, wherever it lies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unbounded.datastore.index import IndexEvent
from unbounded.datastore.votes import Votes
from unbounded.errors import MemoryFault
from unbounded.types import Distances, Hidden, Ids, Positions, Table


@dataclass(frozen=True)
class Neighbors:
    """The entries nearest to each query, nearest first.

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


class Datastore(ABC):
    """Pairs appended as they are read, and found again by their states.

    A step sees every pair before it and none after: `read` over a block finds what searching and
    then adding one pair at a time would have found.
    """

    @abstractmethod
    def __len__(self) -> int:
        """How many pairs can be found."""

    @property
    @abstractmethod
    def window(self) -> int | None:
        """How many of the last pairs a search sees; None is all of them."""

    @property
    @abstractmethod
    def added(self) -> int:
        """How many pairs were ever added."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """What all pairs take in memory."""

    @property
    @abstractmethod
    def events(self) -> Sequence[IndexEvent]:
        """What the memory did to itself."""

    @property
    def bytes_per_entry(self) -> float:
        """Bytes over entries; 0 when there are none."""
        return self.bytes / len(self) if len(self) else 0.0

    @abstractmethod
    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""

    @abstractmethod
    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""

    def prefetch(self, keys: Hidden, k: int) -> None:  # noqa: B027 - most have nothing to do
        """These keys will be read next: whoever has to ask elsewhere may begin; changes nothing."""

    @abstractmethod
    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time.

        Step t is not shown its own word, nor any later one.
        """

    @abstractmethod
    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Not a number in a row that had no neighbors at all.
        """

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that was read, as arrays."""

    @abstractmethod
    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become the memory that wrote the state; only one of the same settings can."""

    # A state in two parts, as an index has it.

    @abstractmethod
    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come since this was last called; None if that is not known."""

    @abstractmethod
    def again(self, words: Ids) -> None:
        """Words whose keys come with `grow` and `settle`."""

    @abstractmethod
    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add what has come."""

    @abstractmethod
    def rest(self) -> dict[str, np.ndarray]:
        """All but the growth and the words."""

    @abstractmethod
    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""


def check_pairs(keys: Hidden, words: Ids) -> None:
    """Refuse what are no pairs."""
    if len(keys) != len(words):
        raise MemoryFault(f"{len(keys)} keys for {len(words)} words; give one word to each key")
    if len(words) and (words.min() < 0 or words.max() >= 2**31):
        raise MemoryFault(
            f"words from {words.min()} to {words.max()}; ids lie between 0 and {2**31 - 1}: "
            "encode unknown words first"
        )
