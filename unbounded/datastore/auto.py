"""The default index: exact while small, then codes in lists that grow with their entries."""

import time
from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded._native import QuantizedLists
from unbounded.datastore.exact import ExactKeys
from unbounded.datastore.index import Index, IndexEvent
from unbounded.datastore.quantized import fitted, restored
from unbounded.datastore.votes import Votes
from unbounded.errors import MemoryFault, SettingError
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table

# Lists are split so often while as many keys come as were exact.
_SPLITS = 8


@final
class Auto(Index):
    """Exact up to `exact` keys, then 64-byte codes in lists that are split in two as they grow.

    The axes of the codes are fitted once, to the first `exact` keys of the stream, in less than a
    second; after that nothing is ever trained again. How a stream is cut into blocks changes
    nothing: codes are made key by key, products are sums of integers, and lists are split at fixed
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
        if exact < 256 or exact % _SPLITS:
            raise SettingError(
                f"exact up to {exact} keys; take at least 256, a multiple of {_SPLITS}"
            )
        self.exact = exact
        self._keys: ExactKeys | QuantizedLists = ExactKeys(width)
        # How many exact keys were known when growth was last asked for.
        self._known: int | None = None
        # Whether the lists know the word of each entry, so that votes can be counted there.
        self._tagged = False

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes, positions and centroids."""
        return self._keys.bytes

    @property
    def room(self) -> int:
        """Keys that may come until the index is rearranged."""
        if isinstance(self._keys, ExactKeys):
            return self.exact - len(self._keys)
        return self._keys.room

    def _append(self, keys: Hidden, words: Ids | None) -> None:
        came = np.zeros(len(keys), np.int64) if words is None else np.asarray(words, np.int64)
        if isinstance(self._keys, ExactKeys):
            room = self.room
            self._keys.add(keys[:room])
            if len(self._keys) == self.exact:
                self._keys = self._coded(self._keys.view)
            keys, came = keys[room:], came[room:]
        if isinstance(self._keys, QuantizedLists):
            self._tagged = self._tagged and words is not None
            self._keys.add(keys, np.ascontiguousarray(came))

    def _coded(self, keys: Hidden) -> QuantizedLists:
        began = time.perf_counter()
        lists = fitted(keys, self.exact // _SPLITS)
        lists.add(keys, np.zeros(len(keys), np.int64))
        self._tagged = False
        what = f"switched from exact to codes in {lists.count:,} lists"
        self.events.append(IndexEvent(len(keys), what, time.perf_counter() - began))
        return lists

    def _search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        return self._keys.search(queries, k, own_past)

    def _score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        if isinstance(self._keys, QuantizedLists):
            self._tag(known)
            came = np.ascontiguousarray(words, np.int64)
            return self._keys.score(keys, came, known, k, *votes.settings)
        shares = self._keys.score(keys, words, known, k, votes)
        if len(self._keys) == self.exact:
            self._keys = self._coded(self._keys.view)
        return shares

    def vote(self, queries: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all entries for one word a query; changes nothing."""
        if isinstance(self._keys, ExactKeys):
            return super().vote(queries, words, known, k, votes)
        self._tag(known)
        came, asked = np.ascontiguousarray(words, np.int64), self._checked(queries, "queries")
        return self._keys.score(asked, came, known, k, *votes.settings, learn=False)

    def _tag(self, known: Known) -> None:
        """Tell the lists the word of each entry, if they do not know them."""
        if isinstance(self._keys, QuantizedLists) and not self._tagged:
            self._keys.retag(known)
            self._tagged = True

    def growth(self) -> dict[str, np.ndarray] | None:
        """The keys or codes since this was last called; None the first time, and at the switch."""
        if isinstance(self._keys, QuantizedLists):
            return self._keys.growth()
        known, self._known = self._known, len(self._keys)
        return None if known is None else {"keys": self._keys.view[known:].copy()}

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add the keys or codes, which then count as known."""
        self._tagged = False
        if isinstance(self._keys, QuantizedLists):
            try:
                self._keys.grow(
                    np.ascontiguousarray(growth["codes"]), np.ascontiguousarray(growth["lists"])
                )
            except ValueError as error:
                raise MemoryFault(f"{error}; restore an older one") from None
        else:
            self._keys.add(self._checked(growth["keys"], "keys"))
            self._known = len(self._keys)

    def _state(self) -> dict[str, np.ndarray]:
        if isinstance(self._keys, ExactKeys):
            return {"keys": self._keys.view.copy()}
        return self._keys.state()

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._known, self._tagged = None, False
        if "codes" not in state:
            self._keys = ExactKeys(self.width)
            self._keys.add(self._checked(state["keys"], "keys"))
            return
        try:
            self._keys = restored(state, self.exact // _SPLITS)
        except ValueError as error:
            raise MemoryFault(
                f"the codes of the state do not fit together ({error}); restore an older one"
            ) from None
