"""Every pair as it is, every search exact: the oracle all others are tested against."""

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from unbounded import _native
from unbounded.datastore.datastore import (
    Datastore,
    Neighbors,
    Votes,
    checked_k,
    checked_keys,
    checked_pairs,
    checked_width,
    from_header,
    stacked,
    to_header,
    words_of,
)
from unbounded.errors import SettingError
from unbounded.growable_array import GrowableArray
from unbounded.states import Arrays, part, under
from unbounded.types import Distances, Hidden, Ids, Positions, Table

# Keys of a window that are stored and searched together however small it is.
_TOGETHER = 4096


@final
class Flat(Datastore):
    """All pairs, or the last `window` of them, searched exactly.

    Positions count from the first pair ever. A window of 10,000 is the paper's: "a local cache of
    size 10,000".

    >>> store = Flat(1, window=2)
    >>> store.add(np.array([[5], [6], [7]], np.float32), np.array([1, 2, 3]))
    >>> found = store.search(np.array([[5]], np.float32), k=8)
    >>> found.squared.tolist(), found.words.tolist(), found.positions.tolist()
    ([[1.0, 4.0]], [[2, 3]], [[1, 2]])
    """

    def __init__(self, width: int, window: int | None = None) -> None:
        self.width = checked_width(width)
        if window is not None and window < 1:
            raise SettingError(f"a window of {window}; it needs at least 1 key")
        self.window = window
        self.events = []
        self._added = 0
        self._hold(np.empty((0, width), np.float32), np.empty(0, np.int32))

    def _hold(self, keys: Hidden, words: np.ndarray) -> None:
        self._keys, self._words = GrowableArray(keys), GrowableArray(words, spare=8)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return self._added

    @property
    def keys(self) -> Hidden:
        """The key of each entry, oldest first; valid until the next is added."""
        return self._keys.view

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._words.view

    @property
    def bytes(self) -> int:
        """Keys and words, up to twice a window because they lie together."""
        return self._keys.bytes + self._words.bytes

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self.width)
        last = slice(None) if self.window is None else slice(-self.window, None)
        self._append(keys[last], words[last])
        self._forget(len(keys))

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        queries = checked_keys(queries, self.width, "queries")
        every = np.zeros(len(queries), np.int64), np.full(len(queries), len(self))
        found = _native.exact_search(queries, self.keys, *every, min(checked_k(k), len(self)))
        return self._neighbors(*found)

    def unordered(self, queries: Hidden, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and numbers of the same entries, in no order."""
        found = self.search(queries, k)
        return found.squared, found.positions.astype(np.uint32)

    def search_block(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """What `read` would find; nothing is added."""
        keys, words = checked_pairs(keys, words, self.width)
        low, high = self._seen(len(keys))
        most = int((high - low).max(initial=0))
        self._append(keys, words)
        try:
            found = _native.exact_search(keys, self.keys, low, high, min(checked_k(k), most))
            return self._neighbors(*found, held=len(self) - len(keys))
        finally:
            self._keys.drop_last(len(keys))
            self._words.drop_last(len(keys))

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        keys, words = checked_pairs(keys, words, self.width)
        found = []
        for rows in self._pieces(len(keys)):
            found.append(self.search_block(keys[rows], words[rows], k))
            self.add(keys[rows], words[rows])
        return stacked(found)

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Votes are counted where neighbors are found: there is no room to be made for them.
        """
        keys, words = checked_pairs(keys, words, self.width)
        shares = np.empty((len(words), votes.kernels))
        for rows in self._pieces(len(keys)):
            asked, came = keys[rows], words[rows]
            low, high = self._seen(len(asked))
            # Stored before they are searched for: no query is shown what came later.
            self._append(asked, came)
            shares[rows] = _native.exact_score(
                asked, self.keys, low, high, checked_k(k), self.words, came, votes.settings
            )
            self._forget(len(asked))
        return shares

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        queries = checked_keys(queries, self.width, "queries")
        low, high = np.zeros(len(words), np.int64), np.full(len(words), len(self))
        words = np.ascontiguousarray(words, np.int64)
        return _native.exact_score(
            queries, self.keys, low, high, checked_k(k), self.words, words, votes.settings
        )

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Keys and words; since so many pairs, the keys of the others, and all of a window."""
        header = to_header(self._kind, self.width, self._added, self.events)
        if since is None:
            index = {"header": header, "keys": self.keys.copy()}
            return {"words": self.words.copy(), **under("index", index)}
        first = 0 if self.window is not None else since
        return {"header": header, "keys": self.keys[first:].copy()}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts; only one of the same width and kind can."""
        whole = part("index", parts[0])
        from_header(whole, self._kind, self.width)
        found = [each["keys"] for each in (whole, *parts[1:]) if "keys" in each]
        keys = found[-1] if self.window is not None else np.concatenate(found)
        keys = checked_keys(keys, self.width)
        words = words_of(parts, self.window, len(keys))
        last = parts[-1] if parts[1:] else whole
        self._added, self.events = from_header(last, self._kind, self.width)
        self._hold(keys, words)

    @property
    def _kind(self) -> str:
        return "Flat" if self.window is None else "Window"

    def _pieces(self, count: int) -> Iterator[slice]:
        """Blocks to search together: of a window, not more than it takes little space to hold."""
        step = count if self.window is None else max(self.window, _TOGETHER)
        for start in range(0, count, max(step, 1)):
            yield slice(start, start + step)

    def _seen(self, queries: int) -> tuple[np.ndarray, np.ndarray]:
        """The first of the keys here that each of a block's queries sees, and the end of them."""
        high = len(self) + np.arange(queries)
        low = np.zeros_like(high) if self.window is None else np.maximum(high - self.window, 0)
        return low, high

    def _append(self, keys: Hidden, words: Ids) -> None:
        self._keys.append(keys)
        self._words.append(words)

    def _forget(self, count: int) -> None:
        """Count pairs as added, and forget what is out of the window."""
        self._added += count
        if self.window is not None:
            self._keys.keep_last(self.window)
            self._words.keep_last(self.window)

    def _neighbors(
        self, squared: Distances, numbers: Positions, held: int | None = None
    ) -> Neighbors:
        """Numbers here as positions, when so many of the pairs here were added."""
        forgotten = self._added - (len(self) if held is None else held)
        words = _native.words_at(self.words, numbers)
        return Neighbors(squared, words, np.where(numbers < 0, -1, numbers + forgotten))
