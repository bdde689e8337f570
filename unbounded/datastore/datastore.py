"""The contract of every datastore of (hidden state, next word) pairs, and how neighbors vote."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from unbounded import _native
from unbounded.errors import MemoryFault, SettingError
from unbounded.shapes import Float
from unbounded.states import Arrays, Stateful
from unbounded.types import Distances, Hidden, Ids, Positions, Table


@dataclass(frozen=True)
class Neighbors:
    """The entries nearest to each query, nearest first.

    `squared` is the squared Euclidean distance, `words` what came next there, `positions` the
    number of entries before it. After `read` a row that saw fewer entries than others has squared
    distances of infinity, words and positions of -1; after `search` none does.
    """

    squared: Distances
    words: Positions
    positions: Positions

    def in_order(self) -> "Neighbors":
        """The nearest first, of two as near the older."""
        order = np.lexsort((self.positions, self.squared), axis=1)
        return Neighbors(
            np.take_along_axis(self.squared, order, axis=1),
            np.take_along_axis(self.words, order, axis=1),
            np.take_along_axis(self.positions, order, axis=1),
        )


def stacked(parts: Sequence[Neighbors]) -> Neighbors:
    """The rows of all parts, filled up to the longest."""
    shape = (
        sum(len(each.squared) for each in parts),
        max((each.squared.shape[1] for each in parts), default=0),
    )
    found = Neighbors(np.full(shape, np.inf, np.float32), np.full(shape, -1), np.full(shape, -1))
    start = 0
    for each in parts:
        there = slice(start, start + len(each.squared)), slice(each.squared.shape[1])
        found.squared[there] = each.squared
        found.words[there] = each.words
        found.positions[there] = each.positions
        start = there[0].stop
    return found


@dataclass(frozen=True)
class IndexEvent:
    """Something a datastore did to itself: at how many entries, what, and how long it took."""

    entries: int
    what: str
    seconds: float

    def __str__(self) -> str:
        return f"at {self.entries:,} entries: {self.what} ({self.seconds:.1f} s)"


Voting = tuple[bool, float, float, int, np.ndarray]
"""How neighbors vote, as the native code takes it."""

_NO_TRUST = np.empty(0)


@dataclass(frozen=True)
class Votes:
    """How neighbors vote for the word that followed them, the nearer the more (eq. 6).

    One kernel, or several side by side, each twice as sharp as the one before.

    Without a `bandwidth` it is each query's distance to its furthest neighbor.

    >>> near, words = np.array([[0.0, 1.0]], np.float32), np.array([[7, 8]])
    >>> Votes(gaussian=False, bandwidth=2.0).count(near, words, np.array([7])).round(3).tolist()
    [[0.571]]
    """

    gaussian: bool = True
    sharpness: float = 1.0
    bandwidth: float | None = None
    kernels: int = 1
    trust: Float[np.ndarray, " kernels"] | None = field(default=None, repr=False, compare=False)
    """In each kernel, where only what they say together is wanted: one column, in doubles."""

    @property
    def settings(self) -> Voting:
        """As the native code takes them."""
        trust = _NO_TRUST if self.trust is None else self.trust
        return self.gaussian, self.sharpness, self.bandwidth or 0.0, self.kernels, trust

    def count(self, squared: Distances, words: Positions, targets: Ids) -> Table:
        """Each kernel's share of the votes for one word a row; NaN where there are no neighbors."""
        return _native.count_votes(
            np.ascontiguousarray(squared, np.float32),
            np.ascontiguousarray(words, np.int64),
            np.ascontiguousarray(targets, np.int64),
            self.settings,
        )

    def weights(self, squared: Distances) -> Distances:
        """What each neighbor counts when the kernels are trusted so; a row sums to one or none."""
        return _native.mixed_weights(np.ascontiguousarray(squared, np.float32), self.settings)


class Datastore(Stateful):
    """Pairs appended as they are read, and found again by their hidden states.

    A search returns min(k, entries) neighbors in every row. A step sees every pair before it and
    none after: `read` and `score` over a block find what searching and then adding one pair at a
    time would have found. There is a single writer: no search during an add.
    """

    window: int | None = None
    """How many of the last pairs a search sees; None is all of them."""

    events: list[IndexEvent]
    """What it did to itself."""

    @abstractmethod
    def __len__(self) -> int:
        """How many pairs can be found."""

    @property
    @abstractmethod
    def added(self) -> int:
        """How many pairs were ever added."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """What all pairs take in memory."""

    @property
    @abstractmethod
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""

    @property
    def bytes_per_entry(self) -> float:
        """Bytes over entries; 0 when there are none."""
        return self.bytes / len(self) if len(self) else 0.0

    @abstractmethod
    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""

    @abstractmethod
    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""

    @abstractmethod
    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time.

        Step t is not shown its own word, nor any later one.
        """

    @abstractmethod
    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Not a number in a row that had no neighbors at all.
        """

    @abstractmethod
    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""


class Remote(Datastore):
    """Pairs that lie elsewhere, so that whoever knows what will be asked may say so."""

    @abstractmethod
    def prefetch(self, keys: Hidden, k: int) -> None:
        """These keys will be read next: begin to search for them; changes nothing."""


# What the datastores of this process share.

# A squared length below which distances are finite in 32 bits too.
_LARGEST = 1e37


def checked_width(width: int) -> int:
    """Refuse keys of nothing."""
    if width < 1:
        raise SettingError(f"keys of width {width}; a datastore needs a width of at least 1")
    return width


def checked_keys(rows: Hidden, width: int, what: str = "keys") -> Hidden:
    """Rows as the native code takes them; refused if they are no keys of that width."""
    if rows.shape[1] != width:
        raise MemoryFault(
            f"{what} are {rows.shape[1]} wide, this datastore holds keys {width} wide; "
            "use the network that filled the memory, or start a new one"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(rows, np.float32)
        fits = np.einsum("nd,nd->n", rows, rows) < _LARGEST
    if not fits.all():
        raise MemoryFault(
            f"row {int(fits.argmin())} of {len(rows)} {what} is not finite, or too large for "
            "a distance in 32 bits; check the network's states for overflow"
        )
    return rows


def checked_pairs(keys: Hidden, words: Ids, width: int) -> tuple[Hidden, Ids]:
    """Keys and words as the native code takes them; refused if they are no pairs."""
    if len(keys) != len(words):
        raise MemoryFault(f"{len(keys)} keys for {len(words)} words; give one word to each key")
    if len(words) and (words.min() < 0 or words.max() >= 2**31):
        raise MemoryFault(
            f"words from {words.min()} to {words.max()}; ids lie between 0 and {2**31 - 1}: "
            "encode unknown words first"
        )
    return checked_keys(keys, width), np.ascontiguousarray(words, np.int64)


def checked_k(k: int) -> int:
    """Refuse to search for nothing."""
    if k < 1:
        raise SettingError(f"k is {k}; a search needs at least 1 neighbor")
    return k


def to_header(kind: str, width: int, added: int, events: Sequence[IndexEvent]) -> np.ndarray:
    """What kind of datastore wrote a state, and the little that is no array."""
    header = {"kind": kind, "width": width, "added": added, "events": [*map(asdict, events)]}
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def from_header(state: Arrays, kind: str, width: int) -> tuple[int, list[IndexEvent]]:
    """How many pairs were added, and the events; refused if another kind wrote it."""
    header = json.loads(state["header"].tobytes())
    if (header["kind"], header["width"]) != (kind, width):
        raise MemoryFault(
            f"the state is of {header['kind']}({header['width']}), this datastore is "
            f"{kind}({width}); load it into the kind that wrote it"
        )
    return header["added"], [IndexEvent(**event) for event in header["events"]]


def words_of(parts: Sequence[Arrays], window: int | None, entries: int) -> np.ndarray:
    """The words of a state and of the deltas after it; refused if they are not as many as keys."""
    whole, *deltas = parts
    words = np.concatenate([whole["words"], *(delta["ids"] for delta in deltas)])
    words = words if window is None else words[max(len(words) - window, 0) :]
    if len(words) != entries:
        raise MemoryFault(
            f"the state holds {len(words)} words for {entries} keys; "
            "it is damaged: restore an older one"
        )
    return words.astype(np.int32)
