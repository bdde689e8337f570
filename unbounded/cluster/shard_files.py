"""What lies in a shard's folder: its journal, a table of contents, and small files."""

import json
import secrets
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.cluster.messages import GONE, from_payload
from unbounded.errors import StoreError
from unbounded.store.disk import Disk, sealed, unsealed, write_file
from unbounded.store.journal import Journal
from unbounded.store.layout import journal_path, remove, snapshot_paths
from unbounded.store.records import EMPTY, new_journal, read_json
from unbounded.store.snapshot import read_arrays

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


GENERATION = 1
"""Their journals are written anew under the same name."""

_KEPT, _SEALED, _ZIP = "kept-", b"unbounded kept 1\n", b"PK\x03\x04"


def founded(disk: Disk, path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What the folder says it is, in the file at `path`; a new one is made with an empty journal.

    `id` is in the journal's first record too; those of old folders have none.
    """
    journal = journal_path(path.parent, GENERATION)
    if not path.exists():
        if journal.exists() and journal.stat().st_size > EMPTY:
            raise StoreError(f"{path} is lost, and its journal is there; restore it from a copy")
        identity = secrets.token_hex(8)
        write_file(disk, journal, new_journal(identity))
        write_file(disk, path, sealed({**about, "id": identity}))
    if not journal.exists():
        raise StoreError(f"{path.parent} has lost its journal; restore the folder from a copy")
    try:
        return unsealed(path.read_bytes())
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from None


def keep(disk: Disk, folder: Path, name: str, data: bytes) -> None:
    """Keep something under a name, durably."""
    seal = zlib.crc32(data).to_bytes(4, "little")
    write_file(disk, folder / f"{_KEPT}{name}", _SEALED + seal + data)


def kept(folder: Path, name: str, events: list[str]) -> bytes | None:
    """What was last kept under a name; damage is said, and nothing is there."""
    path = folder / f"{_KEPT}{name}"
    if not path.exists():
        return None
    whole = path.read_bytes()
    if whole.startswith(_ZIP):
        # Written before these files had a checksum; a zip has its own.
        return whole
    head, data = whole[: len(_SEALED) + 4], whole[len(_SEALED) + 4 :]
    if head != _SEALED + zlib.crc32(data).to_bytes(4, "little"):
        events.append(f"{path} is damaged and was not used; the next reader writes it anew")
        return None
    return data


def names_kept(folder: Path) -> list[str]:
    """The names under which something is kept."""
    return [path.name.removeprefix(_KEPT) for path in folder.glob(f"{_KEPT}*")]


def drop_kept(folder: Path) -> None:
    """Remove all that was kept."""
    for path in folder.glob(f"{_KEPT}*"):
        remove(path)


Findings = list[tuple[str, str, str]]
"""Where something is wrong, what, and what to do."""


def findings(journal: Journal, contents: Contents, entries: int) -> Findings:
    """Every checksum of journal and snapshots again, and what they hold against what is known."""
    found: Findings = []
    held: dict[str, int] = {}
    path, read = journal.path, journal.first
    for record in journal.since(0):
        if record.kind == GONE:
            for name in read_json(record.payload)["documents"]:
                held.pop(name, None)
        else:
            piece = from_payload(record.payload)
            held[piece.document] = held.get(piece.document, 0) + len(piece.words)
        read = record.number + 1
    if read < journal.records:
        what = f"unreadable from byte {journal.end_of(read):,} on"
        found.append((str(path), what, "restore it from a copy"))
    elif held != contents.lengths() or sum(held.values()) != entries:
        what = f"{sum(held.values()):,} entries, and {entries:,} are in the index"
        found.append((str(path), what, "remove the snapshots beside it and start the shard again"))
    for snapshot in snapshot_paths(path.parent, journal.generation):
        try:
            read_arrays(snapshot)
        except (OSError, ValueError, KeyError) as error:
            advice = "remove that folder: it is made again from the journal"
            found.append((str(snapshot), f"damaged ({error})", advice))
    return found
