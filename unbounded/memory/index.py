"""The contract of every index of keys: add, then find the nearest, never fewer than there are."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from unbounded.errors import MemoryFault, SettingError
from unbounded.memory.nearest import Nearest, Packed, squared_norms, unpack
from unbounded.memory.threads import in_parallel
from unbounded.types import Distances, Hidden, Positions

# Queries at a time; bounds the room a search takes (about 16 MB) however long a block is.
ROWS = 256

_LARGEST = 1e37

Look = Callable[[int, Packed, int], None]
"""Hears, from several threads, the number of the first row and what it and those after it found.

Packed as `Nearest` packs, with the position that counts as zero; the array is not to be kept.
"""


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

    @property
    def room(self) -> int:
        """How many keys may come until the index rearranges itself.

        A search in between looks at the same keys however the stream was cut into blocks.
        """
        return sys.maxsize

    def search(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """Squared distances (n, min(k, entries)) and positions of the nearest, nearest first."""
        squared, positions = _room_for(len(queries), min(_positive(k), len(self)))
        self.search_by(queries, k, unpacking(squared, positions, ordered=True))
        return squared, positions

    def search_by(self, queries: Hidden, k: int, look: Look) -> None:
        """`search`, some rows at a time and in no order: nothing of what a row found is kept."""
        queries = self._checked(queries, "queries")
        self._find(queries, min(_positive(k), len(self)), own_past=False, look=look)

    def search_block(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """What searching and then adding each query, one at a time, would have found.

        Row t sees the keys of the index and the queries before t, whose positions follow the
        index's. Rows that see fewer keys than others end in infinite distances at position -1.
        Nothing is added; a block longer than `room` may find what `read` would not.
        """
        queries = self._checked(queries, "queries")
        squared, positions = _room_for(len(queries), self.seen_by_last(len(queries), k))
        look = unpacking(squared, positions, ordered=True)
        self._find(queries, squared.shape[1], own_past=True, look=look)
        return squared, positions

    def read(self, keys: Hidden, k: int) -> tuple[Distances, Positions]:
        """Search for each key and then add it, as if one at a time; rows are in no order."""
        seen = self.seen_by_last(len(keys), k)
        squared = np.full((len(keys), seen), np.inf, np.float32)
        positions = np.full((len(keys), seen), -1, np.int64)
        self.read_by(keys, k, unpacking(squared, positions))
        return squared, positions

    def read_by(self, keys: Hidden, k: int, look: Look) -> None:
        """`read`, some rows at a time: what a row found is shown, and nothing of it is kept."""
        keys = self._checked(keys, "keys")
        start = 0
        while start < len(keys):
            piece = keys[start : start + self.room]

            def after(first: int, packed: Packed, base: int, start: int = start) -> None:
                look(start + first, packed, base)

            self._read(piece, self.seen_by_last(len(piece), k), after)
            start += len(piece)

    def _read(self, keys: Hidden, k: int, look: Look) -> None:
        """`read_by` for keys that were checked and for which there is room."""
        norms = squared_norms(keys)

        def show(nearest: Nearest, last: int) -> None:
            self.show_to(nearest)
            nearest.show(keys[:last], norms[:last], self.added)

        self._find_by(show, keys, k, True, look)
        self._append(keys)
        self.added += len(keys)

    def seen_by_last(self, block: int, k: int) -> int:
        """How many neighbors the last key of a block has, the most of any."""
        seen = self.added + max(block - 1, 0)
        if self.reach is not None:
            seen = min(seen, self.reach)
        return min(_positive(k), seen)

    def _find(self, queries: Hidden, k: int, own_past: bool, look: Look) -> None:
        norms = squared_norms(queries)

        def show(nearest: Nearest, last: int) -> None:
            self.show_to(nearest)
            if own_past:
                nearest.show(queries[:last], norms[:last], self.added)

        self._find_by(show, queries, k, own_past, look)

    def _find_by(
        self,
        show: Callable[[Nearest, int], None],
        queries: Hidden,
        k: int,
        own_past: bool,
        look: Look,
    ) -> None:
        """The nearest of what `show` shows to each group of queries, told where it ends."""
        steps = np.arange(len(queries)) if own_past else np.zeros(len(queries), np.int64)
        high = self.added + steps
        low = np.zeros_like(high) if self.reach is None else np.maximum(high - self.reach, 0)

        def part(start: int, stop: int) -> None:
            # Queries that see few keys go in small groups, for each is shown what any of them sees.
            group = ROWS if self.reach is None else min(ROWS, max(self.reach, 64))
            for first in range(start, stop, group):
                last = min(first + group, stop)
                rows = slice(first, last)
                nearest = Nearest(queries[rows], k, low[rows], high[rows])
                show(nearest, last)
                look(first, nearest.packed, nearest.oldest)

        in_parallel(part, len(queries))

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


def unpacking(squared: Distances, positions: Positions, ordered: bool = False) -> Look:
    """Writes what is found into the rows of two arrays, as far as they were found."""

    def look(first: int, packed: Packed, base: int) -> None:
        rows = slice(first, first + len(packed)), slice(packed.shape[1])
        some = np.sort(packed, axis=1) if ordered else packed
        unpack(some, base, squared[rows], positions[rows])

    return look


def _room_for(rows: int, k: int) -> tuple[Distances, Positions]:
    return np.empty((rows, k), np.float32), np.empty((rows, k), np.int64)


def _positive(k: int) -> int:
    if k < 1:
        raise SettingError(f"k is {k}; a search needs at least 1 neighbor")
    return k
