"""What travels between readers and shards: pieces of documents in, neighbors out."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from unbounded import _native
from unbounded.datastore import Neighbors
from unbounded.shapes import Bool
from unbounded.store import records
from unbounded.types import Distances, Hidden, Ids

ENTRIES, GONE, DRAINED = 4, 5, 6
"""Kinds of records of shards and queues, beyond those of a memory's journal."""

_CODED = np.float32(0.9)

_HEAD = struct.Struct("<dQIIIII")

HEAD_BYTES = _HEAD.size
"""Bytes of a piece that say when it was read."""


@dataclass(frozen=True)
class Piece:
    """Every `step`-th word of a document from position `first` on, with its line and its key.

    Words travel as words: each reader and each shard has numbers of its own for them.
    """

    document: str
    first: int
    step: int
    time: float
    lines: Ids
    words: Sequence[str]
    keys: Hidden

    @property
    def shard(self) -> int:
        """The shard that it belongs to, of `step` shards."""
        return self.first % self.step

    @property
    def ordinal(self) -> int:
        """How many entries of the document the shard holds before the first of these."""
        return self.first // self.step

    def after(self, count: int) -> "Piece":
        """The same without the first `count` entries."""
        return Piece(
            self.document,
            self.first + count * self.step,
            self.step,
            self.time,
            self.lines[count:],
            self.words[count:],
            self.keys[count:],
        )

    def upto(self, count: int) -> "Piece":
        """The same, the first `count` entries only."""
        some = slice(count)
        parts = self.lines[some], self.words[some], self.keys[some]
        return Piece(self.document, self.first, self.step, self.time, *parts)

    def fitting(self) -> Iterator["Piece"]:
        """Itself, or parts of it that can each be a record of a journal."""
        head, each = _HEAD.size + len(self.document.encode()), 4 * self.keys.shape[1] + 5
        ends = head + np.cumsum([len(word.encode()) + each for word in self.words])
        if not len(ends) or ends[-1] <= records.LONGEST:
            yield self
            return
        # One that is too long by itself is left for the journal to refuse.
        count = max(int(np.searchsorted(ends, records.LONGEST, "right")), 1)
        yield self.upto(count)
        if count < len(ends):
            yield from self.after(count).fitting()

    def without_keys(self) -> "Piece":
        """The same with keys of no numbers."""
        return Piece(
            *(self.document, self.first, self.step, self.time, self.lines, self.words),
            self.keys[:, :0],
        )


def to_payload(piece: Piece) -> bytes:
    """A piece as bytes, for the journal."""
    name, words = piece.document.encode(), "\n".join(piece.words).encode()
    count, width = piece.keys.shape
    head = _HEAD.pack(piece.time, piece.first, piece.step, count, width, len(name), len(words))
    lines = np.ascontiguousarray(piece.lines, "<i4").tobytes()
    payload = head + name + lines + words + np.ascontiguousarray(piece.keys, "<f4").tobytes()

    def same(data: memoryview) -> bool:
        found = from_payload(data)
        one, other = (
            (p.document, p.first, p.step, p.time, list(p.words), p.keys.shape)
            for p in (piece, found)
        )
        return one == other and np.array_equal(piece.lines, found.lines)

    return records.proved(payload, same)


def time_of(head: bytes) -> float:
    """When a piece was read, from its first bytes."""
    return float(_HEAD.unpack(head)[0])


def from_payload(payload: memoryview) -> Piece:
    """The piece that the bytes hold; `ValueError` if they make no sense."""
    try:
        time, first, step, count, width, named, worded = _HEAD.unpack_from(payload)
    except struct.error as error:
        raise ValueError(str(error)) from None
    at = _HEAD.size + named
    name = str(payload[_HEAD.size : at], "utf-8")
    lines = np.frombuffer(payload, "<i4", count, at).astype(np.int64)
    at += 4 * count
    words = str(payload[at : at + worded], "utf-8").split("\n")
    keys = np.frombuffer(payload, "<f4", count * width, at + worded).reshape(count, width)
    if len(words) != count:
        raise ValueError(f"{len(words)} words for {count} keys")
    return Piece(name, first, step, time, lines, words, keys)


class Found(NamedTuple):
    """What a shard found: the nearest first, entries and words by the shard's own numbers."""

    squared: np.ndarray
    entries: np.ndarray
    words: np.ndarray
    held: int
    """How many entries the shard has."""
    exact: bool
    """Whether distances are those of the keys, not of their codes."""
    epoch: int
    """Numbers of words hold as long as this stays."""
    fresh: list[str]
    """The words that the reader has not yet been told."""

    def rows(self, some: slice) -> "Found":
        """What was found for some of the queries."""
        rows = self.squared[some], self.entries[some], self.words[some]
        return Found(*rows, self.held, self.exact, self.epoch, [])

    def may_have_nearer(self, merged: Distances, k: int) -> Bool[np.ndarray, " n"]:
        """In which rows the shard may have entries among the k nearest that it was not asked for.

        That is where all it told are among them, and it has more. Codes of one shard may make all
        distances a little shorter than those of another: by that alone it is not asked again.
        """
        asked = self.squared.shape[1]
        if asked >= min(k, self.held):
            return np.zeros(len(self.squared), bool)
        far = merged[:, -1] if self.exact else _CODED * merged[:, -1]
        nearer: np.ndarray = self.squared[:, -1] <= far
        return nearer

    def with_rows(self, rows: Ids, found: "Found") -> "Found":
        """The same with these rows as they were found when more was asked for."""
        shape = len(self.squared), found.squared.shape[1]
        out = np.full(shape, np.inf, np.float32), np.zeros(shape, np.uint32), np.zeros(shape, "i4")
        for wide, old, new in zip(out, self[:3], found[:3], strict=True):
            wide[:, : old.shape[1]] = old
            wide[rows] = new
        return Found(*out, found.held, found.exact, found.epoch, [])


@dataclass(frozen=True)
class Place:
    """Where an entry stands: its document, position, line, and when it was read."""

    document: str
    position: int
    line: int
    time: float


@final
class Merged:
    """The nearest so far of some queries, into which the answers of shards are merged.

    >>> merged = Merged(1, 2)
    >>> near, far = np.array([[1.0, 4.0]], np.float32), np.array([[2.0, 9.0]], np.float32)
    >>> places = np.array([[0, 1]], np.uint32)
    >>> merged.merge(far, places, places, np.array([7, 8]), 2, 1)
    >>> merged.merge(near, places, places, np.array([5, 6]), 2, 0)
    >>> merged.found.words.tolist(), merged.found.positions.tolist()
    ([[5, 7]], [[0, 1]])
    """

    def __init__(self, rows: int, k: int) -> None:
        self._k = k
        self.found = Neighbors(
            np.full((rows, k), np.inf, np.float32),
            np.full((rows, k), -1, np.int32),
            np.full((rows, k), -1, np.int64),
        )

    def merge(
        self,
        squared: np.ndarray,
        entries: np.ndarray,
        words: np.ndarray,
        table: np.ndarray,
        step: int,
        first: int,
    ) -> None:
        """Take in neighbors: entry e is at position `step` · e + `first`, word w is `table[w]`."""
        old, shape = self.found, self.found.squared.shape
        new = Neighbors(
            np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(shape, np.int64)
        )
        _native.merge_neighbors(
            *(old.squared, old.words, old.positions),
            np.ascontiguousarray(squared, np.float32),
            np.ascontiguousarray(entries, np.uint32),
            np.ascontiguousarray(words, np.int32),
            np.ascontiguousarray(table, np.int64),
            *(step, first),
            *(new.squared, new.words, new.positions),
        )
        self.found = new
