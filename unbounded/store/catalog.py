"""Where every word came from: its document, line and time; and which words were forgotten."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.growable_array import GrowableArray
from unbounded.shapes import Bool, Int
from unbounded.store.records import Ranges, Words

Spots = Int[np.ndarray, " n"]
"""Positions: how many words the journal holds before each."""


Left = Bool[np.ndarray, " n"]
"""Which words were not forgotten."""


_BLOCK = np.dtype([("first", "i8"), ("number", "i8"), ("forms", "i8"), ("time", "f8")])
"""A block of words: its first position, its record, the one with its forms or 0, its time."""


@dataclass(frozen=True)
class Document:
    """A name, and when the first word under it was read (seconds since 1970)."""

    name: str
    time: float


@dataclass(frozen=True)
class FileNote:
    """A file that was read to its end: its checksum, its words, and where it lay, if known."""

    checksum: str
    words: int
    path: str | None = None


@dataclass(frozen=True)
class Where:
    """Where a word stands, and when it was read (seconds since 1970)."""

    document: str
    line: int
    time: float


@dataclass(frozen=True)
class Lines:
    """Stretches of words that lie in one line, in the order they were read."""

    starts: Spots
    lengths: Spots
    documents: Spots
    lines: Spots


@final
class Catalog:
    """The journal's table of contents: 12 bytes a line and 32 a record, none a word.

    Words are numbered by position, in the order they were read; entries are the positions that
    were not forgotten, numbered without a gap, as the indexes of the memory number them.
    """

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self._numbers: dict[str, int] = {}
        self.positions = 0
        self.files: dict[str, FileNote] = {}
        """Each file as it was when it was read to its end."""
        self._blocks = GrowableArray(np.empty(0, _BLOCK))
        self._runs = GrowableArray(np.empty((0, 3), np.int32))
        self._forgotten = np.empty((0, 2), np.int64)

    @property
    def entries(self) -> int:
        """How many words are left."""
        return self.positions - self.gone

    @property
    def gone(self) -> int:
        """How many words were forgotten."""
        return int((self._forgotten[:, 1] - self._forgotten[:, 0]).sum())

    @property
    def bytes(self) -> int:
        """What the tables take."""
        return self._blocks.view.nbytes + self._runs.view.nbytes + self._forgotten.nbytes

    def number_of(self, document: str) -> int | None:
        """The number of a document, if it has been named."""
        return self._numbers.get(document)

    def add_document(self, document: Document) -> None:
        """The next document."""
        self._numbers[document.name] = len(self.documents)
        self.documents.append(document)

    def add_words(self, number: int, words: Words) -> None:
        """The next block; its record has that number."""
        if len(words.runs) and not (
            0 <= int(words.runs[:, 0].min()) <= int(words.runs[:, 0].max()) < len(self.documents)
        ):
            raise ValueError("words of a document that was never named")
        self._blocks.append(np.array([(self.positions, number, 0, words.time)], _BLOCK))
        self._runs.append(words.runs)
        self.positions += words.count

    def add_forms(self, number: int) -> None:
        """How the last block was written is in that record."""
        last = self._blocks.view[-1:]
        if last["number"].tolist() != [number - 1]:
            raise ValueError("forms of no words")
        last["forms"] = number

    def forget(self, ranges: Ranges) -> None:
        """Words at these positions are gone."""
        for start, stop in ranges:
            if not 0 <= start < stop <= self.positions:
                raise ValueError(f"positions {start} to {stop} of {self.positions} forgotten")
        before = [(start, stop) for start, stop in self._forgotten.tolist()]
        self._forgotten = merged([*before, *ranges])

    def kept(self, first: int, count: int) -> Left:
        """Which of the words from a position on are left."""
        left = np.ones(count, bool)
        begin = int(np.searchsorted(self._forgotten[:, 1], first, "right"))
        for start, stop in self._forgotten[begin:]:
            if start >= first + count:
                break
            left[max(start - first, 0) : stop - first] = False
        return left

    def positions_of(self, entries: Spots) -> Spots:
        """The position of each entry."""
        gaps = self._forgotten
        # Before gap i lie as many entries as positions, less what the gaps before it took.
        taken = np.concatenate([[0], np.cumsum(gaps[:, 1] - gaps[:, 0])])
        passed = np.searchsorted(gaps[:, 0] - taken[:-1], entries, "right")
        return np.asarray(entries + taken[passed])

    def positions_at(self, records: int) -> int:
        """How many words stand in that many records."""
        blocks = self._blocks.view
        later = blocks["first"][np.searchsorted(blocks["number"], records) :]
        return int(later[0]) if len(later) else self.positions

    def entries_before(self, position: int) -> int:
        """How many words that are left stand before a position."""
        gaps = np.minimum(self._forgotten, position)
        return position - int((gaps[:, 1] - gaps[:, 0]).sum())

    def where(self, positions: Spots) -> list[Where]:
        """Where the words at these positions stand."""
        runs = self._runs.view
        at = np.searchsorted(np.cumsum(runs[:, 2]), positions, "right")
        times = self._blocks.view["time"][self.blocks_of(positions)]
        return [
            Where(self.documents[document].name, line, time)
            for (document, line, _), time in zip(runs[at].tolist(), times.tolist(), strict=True)
        ]

    def blocks_of(self, positions: Spots) -> Spots:
        """The number of the block of words in which each position lies."""
        return np.searchsorted(self._blocks.view["first"], positions, "right") - 1

    def block(self, block: int) -> tuple[int, int, int]:
        """The first position of a block, its record, and the one with its forms; 0 is none."""
        first, number, forms, _ = self._blocks.view[block].item()
        return first, number, forms

    def times(self) -> tuple[Spots, np.ndarray]:
        """The first position of each block of words, and when it was read."""
        return self._blocks.view["first"], self._blocks.view["time"]

    def lines(self) -> Lines:
        """All lines; one that lies in two blocks is put together."""
        runs = self._runs.view.astype(np.int64)
        starts = np.cumsum(runs[:, 2]) - runs[:, 2]
        new = np.ones(len(runs), bool)
        new[1:] = (runs[1:, :2] != runs[:-1, :2]).any(axis=1)
        first = np.flatnonzero(new)
        lengths = np.add.reduceat(runs[:, 2], first) if len(first) else runs[:0, 2]
        return Lines(starts[first], lengths, runs[first, 0], runs[first, 1])

    def words_left(self) -> Spots:
        """How many words of each document are left."""
        lines = self.lines()
        if not len(lines.starts):
            return np.zeros(len(self.documents), np.int64)
        left = np.add.reduceat(self.kept(0, self.positions).astype(np.int64), lines.starts)
        return np.bincount(lines.documents, left, len(self.documents)).astype(np.int64)


def merged(ranges: Iterable[tuple[int, int]]) -> Int[np.ndarray, "ranges 2"]:
    """Ranges in order, none of which meets another.

    >>> merged([(5, 7), (0, 2), (2, 3), (6, 9)]).tolist()
    [[0, 3], [5, 9]]
    """
    out: list[list[int]] = []
    for start, stop in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], stop)
        else:
            out.append([start, stop])
    return np.array(out, np.int64).reshape(-1, 2)
