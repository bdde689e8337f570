"""The exact index, the oracle every other one is tested against."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.memory.index import Index
from unbounded.memory.nearest import Nearest, squared_norms
from unbounded.memory.rows import Rows
from unbounded.types import Hidden


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
        self._keys = Rows(np.empty((0, width), np.float32))
        self._norms = Rows(np.empty(0, np.float32))
        self._known: int | None = None

    @property
    def keys(self) -> Hidden:
        """All keys in order; valid until the next add."""
        return self._keys.view

    @property
    def bytes(self) -> int:
        """Keys and their norms, the room for growth included."""
        return self._keys.bytes + self._norms.bytes

    def _state(self) -> dict[str, np.ndarray]:
        return {"keys": self._keys.view.copy()}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        keys = self._checked(state["keys"], "keys")
        self._keys.restore(keys)
        self._norms.restore(squared_norms(keys))

    def growth(self) -> dict[str, np.ndarray] | None:
        """The keys that have come since this was last called; None the first time."""
        known, self._known = self._known, len(self._keys)
        return None if known is None else {"keys": self._keys.view[known:].copy()}

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add the keys, which then count as known."""
        self.add(growth["keys"])
        self._known = len(self._keys)

    def _append(self, keys: Hidden) -> None:
        self._keys.append(keys)
        self._norms.append(squared_norms(keys))

    def show_to(self, nearest: Nearest) -> None:
        """Show the queries all keys."""
        nearest.show(self._keys.view, self._norms.view, 0)
