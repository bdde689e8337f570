"""Keys as they are, and exact searches of them."""

from typing import final

import numpy as np

from unbounded import _native
from unbounded.datastore.growable_rows import GrowableRows
from unbounded.datastore.votes import Votes
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table


@final
class ExactKeys:
    """Keys in order of insertion; of a `window`, the last so many, and no search sees more."""

    def __init__(self, width: int, window: int | None = None) -> None:
        self._keys = GrowableRows(np.empty((0, width), np.float32))
        self._window = window

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def view(self) -> Hidden:
        """All keys in order; valid until the next add."""
        return self._keys.view

    @property
    def bytes(self) -> int:
        """Keys, the room for growth included."""
        return self._keys.bytes

    def add(self, keys: Hidden) -> None:
        """Append keys."""
        self._keys.append(keys if self._window is None else keys[-self._window :])
        self._forget()

    def restore(self, keys: Hidden) -> None:
        """Hold these keys and nothing else."""
        self._keys.restore(keys)

    def search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        """The k nearest of each, nearest first, by number; infinity and -1 where there are fewer.

        With `own_past`, query t also sees the queries before it, numbered behind the keys.
        """
        low, high = self._seen(len(queries), own_past)
        own = queries if own_past else queries[:0]
        self._keys.append(own)
        try:
            return _native.exact_search(queries, self._keys.view, low, high, k)
        finally:
            self._keys.drop_last(len(own))

    def score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the keys."""
        low, high = self._seen(len(keys), own_past=True)
        said = np.concatenate([known[len(known) - len(self) :], words]).astype(np.int32)
        # Stored before they are searched for: no query is shown what came later.
        self._keys.append(keys)
        shares = _native.exact_score(
            keys, self._keys.view, low, high, k, said, np.asarray(words, np.int64), *votes.settings
        )
        self._forget()
        return shares

    def _seen(self, queries: int, own_past: bool) -> tuple[np.ndarray, np.ndarray]:
        """The first key that each query sees, and the end of them."""
        high = len(self) + (np.arange(queries) if own_past else np.zeros(queries, np.int64))
        low = np.zeros_like(high) if self._window is None else np.maximum(high - self._window, 0)
        return low, high

    def _forget(self) -> None:
        if self._window is not None:
            self._keys.keep_last(self._window)
