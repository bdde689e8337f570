"""The exact index, the oracle every other one is tested against."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.datastore.exact import ExactKeys
from unbounded.datastore.index import Index
from unbounded.datastore.votes import Votes
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table


@final
class Flat(Index):
    """Every key as it is, every search exact.

    >>> index = Flat(2)
    >>> index.add(np.array([[0, 0], [3, 4], [0, 1]], np.float32))
    >>> squared, positions = index.search(np.zeros((1, 2), np.float32), k=8)
    >>> squared.tolist(), positions.tolist()
    ([[0.0, 1.0, 25.0]], [[0, 2, 1]])
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self._keys = ExactKeys(width)
        self._known: int | None = None

    @property
    def keys(self) -> Hidden:
        """All keys in order; valid until the next add."""
        return self._keys.view

    @property
    def bytes(self) -> int:
        """The keys, the room for growth included."""
        return self._keys.bytes

    def _state(self) -> dict[str, np.ndarray]:
        return {"keys": self._keys.view.copy()}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._keys.restore(self._checked(state["keys"], "keys"))

    def growth(self) -> dict[str, np.ndarray] | None:
        """The keys that have come since this was last called; None the first time."""
        known, self._known = self._known, len(self._keys)
        return None if known is None else {"keys": self._keys.view[known:].copy()}

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add the keys, which then count as known."""
        self.add(growth["keys"])
        self._known = len(self._keys)

    def _append(self, keys: Hidden, words: Ids | None) -> None:
        self._keys.add(keys)

    def _search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        return self._keys.search(queries, k, own_past)

    def _score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        return self._keys.score(keys, words, known, k, votes)
