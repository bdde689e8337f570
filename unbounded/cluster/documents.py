"""A shard's table of contents: which document each entry is of, and where it lies on disk."""

import json
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

_COLUMNS = ("first", "document", "ordinal", "count", "step", "start", "number")


@dataclass(frozen=True)
class Stretch:
    """Entries of one document that came together, and their record in the journal."""

    first: int
    document: int
    ordinal: int
    count: int
    step: int
    start: int
    number: int


@final
class Contents:
    """56 bytes for each piece that came, none for an entry.

    >>> contents = Contents()
    >>> contents.append("a.txt", 0, 3, 2, 20, 0)
    >>> contents.append("b.txt", 0, 2, 2, 90, 1)
    >>> contents.held("a.txt"), contents.entries, contents.stretch_of(3).ordinal
    (3, 5, 0)
    """

    def __init__(self) -> None:
        self.documents: list[str] = []
        self._numbers: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._columns = {name: array("q") for name in _COLUMNS}
        self.entries = 0

    def append(
        self, document: str, ordinal: int, count: int, step: int, start: int, number: int
    ) -> None:
        """A piece was added to the end of the index."""
        known = self._numbers.setdefault(document, len(self.documents))
        if known == len(self.documents):
            self.documents.append(document)
        row = (self.entries, known, ordinal, count, step, start, number)
        for name, value in zip(_COLUMNS, row, strict=True):
            self._columns[name].append(value)
        self._held[document] = ordinal + count
        self.entries += count

    def held(self, document: str) -> int:
        """How many entries of a document there are."""
        return self._held.get(document, 0)

    def lengths(self) -> dict[str, int]:
        """How many entries of each document there are."""
        return dict(self._held)

    def names_like(self, name: str) -> list[str]:
        """Documents under a name: itself, and a file's later documents, called NAME#2, …"""
        parts = (one.rpartition("#") for one in self._held)
        later = [f"{a}#{b}" for a, _, b in parts if a == name and b.isdigit()]
        return ([name] if name in self._held else []) + later

    def stretches(self) -> Iterator[Stretch]:
        """All of them, in the order they came."""
        for row in zip(*(self._columns[name] for name in _COLUMNS), strict=True):
            yield Stretch(*row)

    def stretch_of(self, entry: int) -> Stretch:
        """The one that an entry is in."""
        first = np.frombuffer(self._columns["first"], np.int64)
        at = int(np.searchsorted(first, entry, side="right")) - 1
        return Stretch(*(self._columns[name][at] for name in _COLUMNS))

    def stretches_of(self, document: str, low: int, high: int) -> Iterator[Stretch]:
        """Those of a document that hold entries from the `low`-th to before the `high`-th."""
        number = self._numbers.get(document)
        if number is None:
            return
        named = {n: np.frombuffer(self._columns[n], np.int64) for n in _COLUMNS}
        mine = named["document"] == number
        mine &= (named["ordinal"] < high) & (named["ordinal"] + named["count"] > low)
        for at in np.flatnonzero(mine).tolist():
            yield Stretch(*(self._columns[name][at] for name in _COLUMNS))

    def state(self) -> dict[str, np.ndarray]:
        """The table, as arrays."""
        columns = {n: np.array(self._columns[n], np.int64) for n in _COLUMNS}
        names = json.dumps(self.documents).encode()
        return {**columns, "documents": np.frombuffer(names, np.uint8)}

    def begins_as(self, state: Mapping[str, np.ndarray]) -> bool:
        """Whether the table that gave a state was the beginning of this one."""
        names = json.loads(state["documents"].tobytes())
        count = len(state["first"])
        mine = (np.array(self._columns[n][:count], np.int64) for n in _COLUMNS)
        same = (np.array_equal(m, state[n]) for m, n in zip(mine, _COLUMNS, strict=True))
        return names == self.documents[: len(names)] and all(same)
