"""The last keys only: the local cache's index."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.memory.index import Index, Look
from unbounded.memory.nearest import Nearest, squared_norms
from unbounded.memory.rows import Rows
from unbounded.types import Hidden

# Keys that are stored and searched together however small the window is.
_TOGETHER = 4096


@final
class Window(Index):
    """The last `size` keys, searched exactly; positions go on counting from the first key ever.

    10,000 is the paper's: "a local cache of size 10,000".

    >>> index = Window(1, size=2)
    >>> index.add(np.array([[5], [6], [7]], np.float32))
    >>> index.search(np.array([[5]], np.float32), k=8)[1].tolist()
    [[1, 2]]
    """

    def __init__(self, width: int, size: int = 10_000) -> None:
        super().__init__(width)
        if size < 1:
            raise SettingError(f"a window of {size}; it needs at least 1 key")
        self.size = self.reach = size
        self._keys = Rows(np.empty((0, width), np.float32))
        self._norms = Rows(np.empty(0, np.float32))
        # Keys stored that `added` does not count yet.
        self._ahead = 0

    @property
    def bytes(self) -> int:
        """Keys and their norms, up to twice the window because the room is kept contiguous."""
        return self._keys.bytes + self._norms.bytes

    def _state(self) -> dict[str, np.ndarray]:
        return {"keys": self._keys.view.copy()}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        keys = self._checked(state["keys"], "keys")
        self._keys.restore(keys)
        self._norms.restore(squared_norms(keys))

    def growth(self) -> dict[str, np.ndarray] | None:
        """Nothing: all of a window is rest."""
        return {}

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Nothing."""

    def rest(self) -> dict[str, np.ndarray]:
        """The window."""
        return self.state()

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Hold that window."""
        self.load(rest)

    @property
    def room(self) -> int:
        """As many as the window holds, or some thousands: a longer block only takes more space."""
        return max(self.size, _TOGETHER)

    def _append(self, keys: Hidden) -> None:
        self._store(keys[-self.size :])
        self._drop()

    def _read(self, keys: Hidden, k: int, look: Look) -> None:
        # Stored before they are searched for, so that one pass finds what a query sees of the
        # window and of its own block: `Nearest` looks at nothing that came later.
        self._store(keys)
        self._ahead = len(keys)
        self._find_by(lambda nearest, last: self.show_to(nearest), keys, k, True, look)
        self._drop()
        self._ahead = 0
        self.added += len(keys)

    def _store(self, keys: Hidden) -> None:
        self._keys.append(keys)
        self._norms.append(squared_norms(keys))

    def _drop(self) -> None:
        self._keys.keep_last(self.size)
        self._norms.keep_last(self.size)

    def show_to(self, nearest: Nearest) -> None:
        """Show the queries all keys that any of them sees."""
        first = self.added + self._ahead - len(self._keys)
        seen = slice(max(nearest.oldest - first, 0), nearest.newest - first)
        nearest.show(self._keys.view[seen], self._norms.view[seen], first + seen.start)
