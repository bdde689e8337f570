"""The contract of every index of keys: add, then find the nearest, never fewer than there are."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from unbounded.datastore.votes import Votes
from unbounded.errors import MemoryFault, SettingError
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table

_LARGEST = 1e37


@dataclass(frozen=True)
class IndexEvent:
    """Something an index did to itself: at how many entries, what, and how long it took."""

    entries: int
    what: str
    seconds: float

    def __str__(self) -> str:
        return f"at {self.entries:,} entries: {self.what} ({self.seconds:.1f} s)"


class Index(ABC):
    """Keys in order of insertion, searched by squared Euclidean distance.

    A search returns min(k, entries) neighbors in every row, the nearest first; a position is the
    number of keys that were added before. An index is a single-writer object: no search during an
    add.
    """

    window: int | None = None
    """How many of the last keys a search sees; None is all of them."""

    def __init__(self, width: int) -> None:
        if width < 1:
            raise SettingError(f"keys of width {width}; an index needs a width of at least 1")
        self.width = width
        self.added = 0
        self.events: list[IndexEvent] = []

    def __len__(self) -> int:
        return self.added if self.window is None else min(self.added, self.window)

    def add(self, keys: Hidden, words: Ids | None = None) -> None:
        """Append keys, and the word of each for those that vote; refused keys change nothing."""
        keys = self._checked(keys, "keys")
        self._append(keys, words)
        self.added += len(keys)

    @property
    def room(self) -> int:
        """How many keys may come until the index rearranges itself.

        A search in between looks at the same keys however the stream was cut into blocks.
        """
        return sys.maxsize

    def search(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """Squared distances (n, min(k, entries)) and positions of the nearest, nearest first."""
        return self._search(self._checked(queries, "queries"), min(_positive(k), len(self)), False)

    def search_block(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """What searching and then adding each query, one at a time, would have found.

        Row t sees the keys of the index and the queries before t, whose positions follow the
        index's. Rows that see fewer keys than others end in infinite distances at position -1.
        Nothing is added; a block longer than `room` may find what `read` would not.
        """
        queries = self._checked(queries, "queries")
        return self._search(queries, self.seen_by_last(len(queries), k), True)

    def read(self, keys: Hidden, k: int) -> tuple[Distances, Positions]:
        """Search for each key and then add it, as if one at a time."""
        keys = self._checked(keys, "keys")
        shape = len(keys), self.seen_by_last(len(keys), k)
        squared, positions = np.full(shape, np.inf, np.float32), np.full(shape, -1, np.int64)
        start = 0
        while start < len(keys):
            piece = keys[start : start + self.room]
            rows = slice(start, start + len(piece)), slice(self.seen_by_last(len(piece), k))
            squared[rows], positions[rows] = self.search_block(piece, k)
            self.add(piece)
            start += len(piece)
        return squared, positions

    def score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the keys.

        `known` are the words of the entries that can be found; there must be `room` for the keys.
        """
        shares = self._score(self._checked(keys, "keys"), words, known, _positive(k), votes)
        self.added += len(keys)
        return shares

    def vote(self, queries: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all entries for one word a query; changes nothing."""
        squared, positions = self.search(queries, k)
        there = known[positions - (self.added - len(known))].astype(np.int64)
        return votes.count(squared, there, words)

    def seen_by_last(self, block: int, k: int) -> int:
        """How many neighbors the last key of a block has, the most of any."""
        seen = self.added + max(block - 1, 0)
        if self.window is not None:
            seen = min(seen, self.window)
        return min(_positive(k), seen)

    def state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as arrays."""
        return {**self._header(), **self._state()}

    def _header(self) -> dict[str, np.ndarray]:
        header = {
            "kind": type(self).__name__,
            "width": self.width,
            "added": self.added,
            "events": [asdict(event) for event in self.events],
        }
        return {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on as the index that wrote the state, which must have had the same settings.

        Its arrays may be kept and changed. It is trusted: a damaged one may end the process inside
        faiss.
        """
        header = json.loads(state["header"].tobytes())
        if (header["kind"], header["width"]) != (type(self).__name__, self.width):
            raise MemoryFault(
                f"the state is of {header['kind']}({header['width']}), this index is "
                f"{type(self).__name__}({self.width}); load it into the kind that wrote it"
            )
        self._load(state)
        self._take_header(state)

    def _take_header(self, state: Mapping[str, np.ndarray]) -> None:
        header = json.loads(state["header"].tobytes())
        self.added = header["added"]
        self.events = [IndexEvent(**event) for event in header["events"]]

    # A state in two parts: what has come since the last time, which is to be added, and the rest,
    # which is small and is put in the place of what was there.

    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come since this was last called; None if it is not known, as the first time.

        Whoever never calls it pays nothing.
        """
        return None

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add what has come; to be settled before it is searched."""
        raise MemoryFault(f"{type(self).__name__} does not grow by parts; load its whole state")

    def rest(self) -> dict[str, np.ndarray]:
        """All that is not growth."""
        return self._header()

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest, once all growth before it was added."""
        self._take_header(rest)

    @property
    @abstractmethod
    def bytes(self) -> int:
        """What the index holds in memory."""

    @abstractmethod
    def _state(self) -> dict[str, np.ndarray]:
        """What is particular to this kind of index."""

    @abstractmethod
    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over what `_state` gave."""

    @abstractmethod
    def _append(self, keys: Hidden, words: Ids | None) -> None:
        """Store keys that were checked; `added` does not count them yet."""

    @abstractmethod
    def _search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        """The k nearest of queries that were checked; with `own_past`, of those before them too."""

    @abstractmethod
    def _score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        """`score` for keys that were checked; stores them, and `added` does not count them yet."""

    def _checked(self, rows: Hidden, what: str) -> Hidden:
        if rows.shape[1] != self.width:
            raise MemoryFault(
                f"{what} are {rows.shape[1]} wide, this index holds keys {self.width} wide; "
                "use the network that filled the memory, or start a new one"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.ascontiguousarray(rows, np.float32)
            # Not only finite, but small enough for distances to be finite too.
            fits = np.einsum("nd,nd->n", rows, rows) < _LARGEST
        if not fits.all():
            raise MemoryFault(
                f"row {int(fits.argmin())} of {len(rows)} {what} is not finite, or too large for "
                "a distance in 32 bits; check the network's states for overflow"
            )
        return rows


def _positive(k: int) -> int:
    if k < 1:
        raise SettingError(f"k is {k}; a search needs at least 1 neighbor")
    return k
