"""The contract of every index of keys: add, then find the nearest, never fewer than there are."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from unbounded.errors import MemoryFault, SettingError
from unbounded.memory.nearest import Nearest, squared_norms
from unbounded.types import Distances, Hidden, Positions

# Queries at a time; bounds the room a search takes (about 25 MB) however long a block is.
ROWS = 512

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

    reach: int | None = None
    """How many of the last keys a search sees; None is all of them."""

    def __init__(self, width: int) -> None:
        if width < 1:
            raise SettingError(f"keys of width {width}; an index needs a width of at least 1")
        self.width = width
        self.added = 0
        self.events: list[IndexEvent] = []

    def __len__(self) -> int:
        return self.added if self.reach is None else min(self.added, self.reach)

    def add(self, keys: Hidden) -> None:
        """Append keys; refused keys leave everything as it was."""
        keys = self._checked(keys, "keys")
        self._append(keys)
        self.added += len(keys)

    def search(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """Squared distances (n, min(k, entries)) and positions of the nearest, nearest first."""
        queries = self._checked(queries, "queries")
        return self._find(queries, min(_positive(k), len(self)), own_past=False)

    def search_block(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """What searching and then adding each query, one at a time, would have found.

        Row t sees the keys of the index and the queries before t, whose positions follow the
        index's. Rows that see fewer keys than others end in infinite distances at position -1.
        Nothing is added.
        """
        queries = self._checked(queries, "queries")
        seen = self.added + max(len(queries) - 1, 0)
        if self.reach is not None:
            seen = min(seen, self.reach)
        return self._find(queries, min(_positive(k), seen), own_past=True)

    def _find(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        squared = np.empty((len(queries), k), np.float32)
        positions = np.empty((len(queries), k), np.int64)
        norms = squared_norms(queries)
        steps = np.arange(len(queries)) if own_past else np.zeros(len(queries), np.int64)
        high = self.added + steps
        low = np.zeros_like(high) if self.reach is None else np.maximum(high - self.reach, 0)
        for start in range(0, len(queries), ROWS):
            stop = min(start + ROWS, len(queries))
            rows = slice(start, stop)
            nearest = Nearest(queries[rows], k, low[rows], high[rows])
            self.show_to(nearest)
            if own_past:
                nearest.show(queries[:stop], norms[:stop], self.added)
            squared[rows], positions[rows] = nearest.take()
        return squared, positions

    def state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as arrays."""
        header = {
            "kind": type(self).__name__,
            "width": self.width,
            "added": self.added,
            "events": [asdict(event) for event in self.events],
        }
        return {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **self._state()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on as the index that wrote the state, which must have had the same settings.

        The state is trusted: a damaged one may end the process inside faiss.
        """
        header = json.loads(state["header"].tobytes())
        if (header["kind"], header["width"]) != (type(self).__name__, self.width):
            raise MemoryFault(
                f"the state is of {header['kind']}({header['width']}), this index is "
                f"{type(self).__name__}({self.width}); load it into the kind that wrote it"
            )
        self._load(state)
        self.added = header["added"]
        self.events = [IndexEvent(**event) for event in header["events"]]

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
    def _append(self, keys: Hidden) -> None:
        """Store keys that were checked; `added` does not count them yet."""

    @abstractmethod
    def show_to(self, nearest: Nearest) -> None:
        """Show the queries every stored key that may be among their nearest."""

    def _checked(self, rows: Hidden, what: str) -> Hidden:
        if rows.shape[1] != self.width:
            raise MemoryFault(
                f"{what} are {rows.shape[1]} wide, this index holds keys {self.width} wide; "
                "use the network that filled the memory, or start a new one"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.ascontiguousarray(rows, np.float32)
            # Not only finite, but small enough for distances to be finite too.
            fits = squared_norms(rows) < _LARGEST
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
