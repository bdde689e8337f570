"""The default index: exact while small, then codes in lists that grow with their entries."""

import time
from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.memory.codes import Coder
from unbounded.memory.flat import Flat
from unbounded.memory.index import Index, IndexEvent, Look
from unbounded.memory.lists import Lists
from unbounded.memory.nearest import Nearest
from unbounded.types import Hidden

# Lists are cut so often while as many keys come as were exact.
_SETTLINGS = 8


@final
class Auto(Index):
    """Exact up to `exact` keys, then 64-byte codes in lists that are cut in two as they grow.

    The axes of the codes are fitted once, to the first `exact` keys of the stream, in less than a
    second; after that nothing is ever trained again. How a stream is cut into blocks changes
    nothing: codes are made key by key, products are sums of integers, and lists are cut at fixed
    counts of entries, where blocks end too (`room`).

    >>> index = Auto(2, exact=256)
    >>> index.add(np.random.default_rng(0).normal(size=(1100, 2)).astype(np.float32))
    >>> index.search(np.zeros((1, 2), np.float32), k=1100)[1].shape
    (1, 1100)
    >>> [event.entries for event in index.events]
    [256]
    """

    def __init__(self, width: int, exact: int = 16_384) -> None:
        super().__init__(width)
        if exact < 256 or exact % _SETTLINGS:
            raise SettingError(
                f"exact up to {exact} keys; take at least 256, a multiple of {_SETTLINGS}"
            )
        self.exact = exact
        self._keys: Flat | Lists = Flat(width)
        # Whose growth is known.
        self._followed: Flat | Lists | None = None

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes, positions and centroids."""
        return self._keys.bytes

    @property
    def _settle(self) -> int:
        return self.exact // _SETTLINGS

    @property
    def room(self) -> int:
        """Keys that may come until the index is rearranged."""
        if isinstance(self._keys, Flat):
            return self.exact - len(self._keys)
        return self._keys.room

    def _append(self, keys: Hidden) -> None:
        if isinstance(self._keys, Flat):
            room = self.room
            self._keys.add(keys[:room])
            if len(self._keys) < self.exact:
                return
            self._keys = self._coded(self._keys.keys)
            keys = keys[room:]
        self._keys.add(self._keys.coder.encode(keys))

    def _coded(self, keys: Hidden) -> Lists:
        began = time.perf_counter()
        coder = Coder(keys)
        lists = Lists(coder, self._settle)
        lists.add(coder.encode(keys))
        what = f"switched from exact to codes in {lists.count:,} lists"
        self.events.append(IndexEvent(len(lists), what, time.perf_counter() - began))
        return lists

    def _find(self, queries: Hidden, k: int, own_past: bool, look: Look) -> None:
        if isinstance(self._keys, Flat):
            super()._find(queries, k, own_past, look)
        else:
            self._keys.find(self._keys.coder.encode(queries), k, own_past, look)

    def _read(self, keys: Hidden, k: int, look: Look) -> None:
        if isinstance(self._keys, Flat):
            super()._read(keys, k, look)
            return
        coded = self._keys.coder.encode(keys)
        lists = self._keys.find(coded, k, own_past=True, look=look)
        self._keys.add_block(coded, lists)
        self.added += len(keys)

    def show_to(self, nearest: Nearest) -> None:
        """Show the queries all keys, while they are exact."""
        assert isinstance(self._keys, Flat)
        self._keys.show_to(nearest)

    def growth(self) -> dict[str, np.ndarray] | None:
        """The keys or codes since this was last called; None the first time, and at the switch."""
        growth = self._keys.growth()
        known, self._followed = self._keys is self._followed, self._keys
        return growth if known else None

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add the keys or codes, which then count as known."""
        self._keys.grow(growth)
        self._followed = self._keys

    def _state(self) -> dict[str, np.ndarray]:
        if isinstance(self._keys, Flat):
            return {"keys": self._keys.keys.copy()}
        return self._keys.state()

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        if "codes" in state:
            self._keys = Lists.restored(state, self._settle)
        else:
            self._keys = Flat(self.width)
            self._keys.add(self._checked(state["keys"], "keys"))
