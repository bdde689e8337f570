"""The last keys only: the local cache's index."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.memory.index import Index
from unbounded.memory.nearest import Nearest, squared_norms
from unbounded.memory.rows import Rows
from unbounded.types import Hidden


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

    def _append(self, keys: Hidden) -> None:
        keys = keys[-self.size :]
        for rows, new in ((self._keys, keys), (self._norms, squared_norms(keys))):
            rows.append(new)
            rows.keep_last(self.size)

    def show_to(self, nearest: Nearest) -> None:
        """Show the queries all keys."""
        nearest.show(self._keys.view, self._norms.view, self.added - len(self._keys))
