"""The last keys only: the local cache's index."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.datastore.exact import ExactKeys
from unbounded.datastore.index import Index
from unbounded.datastore.votes import Votes
from unbounded.errors import SettingError
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table

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
        self.size = self.window = size
        self._keys = ExactKeys(width, size)

    @property
    def bytes(self) -> int:
        """The keys, up to twice the window because the room is kept contiguous."""
        return self._keys.bytes

    def _state(self) -> dict[str, np.ndarray]:
        return {"keys": self._keys.view.copy()}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._keys.restore(self._checked(state["keys"], "keys"))

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

    def _append(self, keys: Hidden, words: Ids | None) -> None:
        self._keys.add(keys)

    def _search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        squared, numbers = self._keys.search(queries, k, own_past)
        return squared, np.where(numbers < 0, -1, numbers + (self.added - len(self._keys)))

    def _score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        return self._keys.score(keys, words, known, k, votes)
