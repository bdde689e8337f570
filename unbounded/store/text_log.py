"""What was read, in the order it was read: blocks of words, where they stand, what is forgotten."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store import records
from unbounded.store.catalog import Catalog, Document, FileNote, Left
from unbounded.store.journal import Journal
from unbounded.store.records import (
    DOCUMENT,
    FILE,
    FORGET,
    FORMS,
    VERB,
    WORDS,
    Ranges,
    Record,
    Runs,
    Words,
    forms_payload,
    json_payload,
    ranges_payloads,
    read_forms,
    read_json,
    read_ranges,
    read_words,
    words_payload,
)
from unbounded.store.snapshot import Snapshot

UNDO = "undo"
"""The verb that is written down where something was taken back, for backups that have it."""

Parts = Sequence[tuple[int, bytes]]
"""Kinds and payloads of records."""


class TextLog(ABC):
    """Records of words and what they say together; on disk, or in this process alone."""

    generation: int
    """How often it was written anew."""

    def __init__(self, name: Path) -> None:
        self.folder = name
        self.events: list[str] = []
        self._clear()

    def say(self, event: str) -> None:
        """Have somebody hear of it, once, however often it happens."""
        if event not in self.events:
            self.events.append(event)

    def _clear(self) -> None:
        self.catalog = Catalog()
        self._forgets: list[tuple[int, int]] = []
        self.verbs: list[tuple[int, str]] = []
        """What was done since it was last compacted: how many records were before, and what."""
        self.undone: set[int] = set()
        """Behind how many records something was taken back."""

    @property
    @abstractmethod
    def journal(self) -> "Journal | ProcessJournal":
        """The records, as long as it is open."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether it was closed."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """All that it holds on disk, what is being written included."""

    @abstractmethod
    def compact(self, arrays: Mapping[str, np.ndarray] | None) -> None:
        """Be written anew without the forgotten words; `arrays` is the state that goes with it."""

    @abstractmethod
    def undo(self, records: int) -> None:
        """Take back all but so many records, synced or not; the catalog is read again."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.journal.records

    def marker(self) -> Snapshot:
        """Where it stands, for `replay` to go on from."""
        catalog, journal = self.catalog, self.journal
        read = self.folder, self.generation, journal.records, journal.end
        checksum = journal.checksum_of(journal.records)
        return Snapshot(*read, catalog.positions, catalog.entries, checksum)

    # Writing.

    def sync(self) -> None:
        """Return once all that was appended is as safe as it gets: it is acknowledged."""
        self.journal.sync()

    def append(
        self,
        words: Sequence[str],
        documents: Sequence[str],
        runs: Runs,
        time: float,
        forms: Sequence[str] | None = None,
    ) -> None:
        """Write down a block of words, and as what they were written; not durable before `sync`.

        A run's document is a number into `documents`.
        """
        fresh = [name for name in dict.fromkeys(documents) if self.catalog.number_of(name) is None]
        parts = [(DOCUMENT, json_payload({"name": name, "time": time})) for name in fresh]
        numbers = {name: len(self.catalog.documents) + i for i, name in enumerate(fresh)}
        known = [numbers.get(name, self.catalog.number_of(name) or 0) for name in documents]
        numbered = np.asarray(runs, np.int64).copy()
        numbered[:, 0] = np.array(known, np.int64)[runs[:, 0]]
        parts.append((WORDS, words_payload(time, numbered, words)))
        # Words are short, what is white space between them need not be: it is only for show.
        if forms is not None and len(payload := forms_payload(words, forms)) <= records.LONGEST:
            parts.append((FORMS, payload))
        self._append(parts)

    def forget(self, ranges: Ranges) -> None:
        """Write down that words are forgotten; durable when it returns."""
        self._append([(FORGET, payload) for payload in ranges_payloads(ranges)])
        self.sync()

    def append_file(self, name: str, note: FileNote) -> None:
        """Write down that a file was read to its end, and what it was; durable when it returns."""
        self._append([(FILE, json_payload({"name": name, **asdict(note)}))])
        self.sync()

    def append_verb(self, verb: str) -> None:
        """Write down what begins here; not durable before `sync`."""
        self._append([(VERB, json_payload({"verb": verb}))])

    def _append(self, parts: Parts) -> None:
        for record in self.journal.append(parts):
            self._take(record)

    def _take(self, record: Record) -> None:
        """Take in a record; `ValueError` if it makes no sense."""
        if record.kind == WORDS:
            self.catalog.add_words(record.number, read_words(record.payload))
        elif record.kind == VERB:
            verb = str(read_json(record.payload)["verb"])
            if verb == UNDO:
                self.undone.add(record.number)
            else:
                self.verbs.append((record.number, verb))
        elif record.kind == FORMS:
            self.catalog.add_forms(record.number)
        elif record.kind == FORGET:
            ranges = read_ranges(record.payload)
            self.catalog.forget(ranges)
            self._forgets.append((record.number, min(start for start, _ in ranges)))
        elif record.kind == DOCUMENT:
            named = read_json(record.payload)
            self.catalog.add_document(Document(str(named["name"]), float(str(named["time"]))))
        elif record.kind == FILE:
            file = read_json(record.payload)
            note = FileNote(str(file["checksum"]), int(file["words"]), file.get("path"))
            self.catalog.files[str(file["name"])] = note
        else:
            raise ValueError(f"a record of kind {record.kind}")

    # Reading.

    def replay(self, start: Snapshot | None = None) -> Iterator[list[str]]:
        """What is left of each block of words, as it was read, after those a snapshot has seen."""
        for words, left in self.blocks(start):
            if left.any():
                every = words.words
                yield every if left.all() else [every[i] for i in np.flatnonzero(left)]

    def blocks(self, start: Snapshot | None = None) -> Iterator[tuple[Words, Left]]:
        """Each block of words as it was read, and which of them are left."""
        position = 0 if start is None else start.positions
        for record in self.journal.since(0 if start is None else start.records):
            if record.kind == WORDS:
                words = read_words(record.payload)
                yield words, self.catalog.kept(position, words.count)
                position += words.count

    def words(self, start: int, stop: int) -> list[str]:
        """The words at these positions, forgotten ones left out."""
        return self._between(start, stop, lambda block, words: words) or []

    def forms(self, start: int, stop: int) -> list[str] | None:
        """How the words at these positions were written, forgotten ones left out; if known."""
        return self._between(start, stop, self._forms_of)

    def forms_at(self, position: int, words: Sequence[str]) -> list[str] | None:
        """How a block of words that begins at a position was written, if that is known."""
        return self._forms_of(int(self.catalog.blocks_of(np.array([position]))[0]), words)

    def _forms_of(self, block: int, words: Sequence[str]) -> list[str] | None:
        _, _, number = self.catalog.block(block)
        return read_forms(words, self.journal.read(number).payload) if number else None

    def _between(
        self, start: int, stop: int, shown: Callable[[int, list[str]], list[str] | None]
    ) -> list[str] | None:
        """What is shown for the words of blocks, of those at these positions that are left."""
        start, stop = max(start, 0), min(stop, self.catalog.positions)
        if start >= stop:
            return []
        first, last = self.catalog.blocks_of(np.array([start, stop - 1])).tolist()
        out: list[str] = []
        for block in range(first, last + 1):
            position, number, _ = self.catalog.block(block)
            every = shown(block, read_words(self.journal.read(number).payload).words)
            if every is None:
                return None
            left = self.catalog.kept(position, len(every))
            part = range(max(start - position, 0), min(stop - position, len(every)))
            out += [every[i] for i in part if left[i]]
        return out


@final
class ProcessJournal:
    """Records of this process: nothing is on disk, and nothing outlives it."""

    end = 0

    def __init__(self) -> None:
        self._records: list[Record] = []

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self._records)

    def checksum_of(self, records: int) -> None:
        """Nothing has to be told from another history."""

    def append(self, parts: Parts) -> list[Record]:
        """Keep records of these kinds and payloads; what they are."""
        new = [
            Record(kind, number, 0, 0, memoryview(payload), 0)
            for number, (kind, payload) in enumerate(parts, self.records)
        ]
        self._records += new
        return new

    def cut(self, count: int) -> None:
        """Take back all but so many records."""
        del self._records[count:]

    def since(self, count: int) -> Iterator[Record]:
        """The records behind so many."""
        return iter(self._records[count:])

    def read(self, number: int) -> Record:
        """The record of that number."""
        return self._records[number]

    def sync(self) -> None:
        """Nothing: it is as safe as the process."""


@final
class InProcess(TextLog):
    """A log of this process."""

    bytes = 0

    def __init__(self) -> None:
        super().__init__(Path("(this process)"))
        self.generation = 1
        self._journal: ProcessJournal | None = ProcessJournal()

    @property
    def journal(self) -> ProcessJournal:
        """The records, as long as it is open."""
        if self._journal is None:
            raise StoreError("the memory was closed; open a new one")
        return self._journal

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._journal is None

    def undo(self, records: int) -> None:
        """Take back all but so many records."""
        self.journal.cut(records)
        self._clear()
        for record in self.journal.since(0):
            self._take(record)

    def compact(self, arrays: Mapping[str, np.ndarray] | None) -> None:
        """Keep what is left alone."""
        left = list(records_left(self))
        self._clear()
        self._journal = ProcessJournal()
        self.generation += 1
        self._append(left)

    def close(self) -> None:
        """Let go of it."""
        self._journal = None


def records_left(log: TextLog) -> Iterator[tuple[int, bytes]]:
    """Documents that still have words, these, cut as they were read, and files they are of."""
    catalog, numbers, position = log.catalog, dict[int, int](), 0
    for words, left in log.blocks():
        here, position = position, position + words.count
        runs = _runs_left(words, left)
        if not len(runs):
            continue
        for old in dict.fromkeys(runs[:, 0].tolist()):
            if old not in numbers:
                numbers[old] = len(numbers)
                named = catalog.documents[old]
                yield DOCUMENT, json_payload({"name": named.name, "time": named.time})
        runs[:, 0] = [numbers[old] for old in runs[:, 0].tolist()]
        every = words.words
        there = np.flatnonzero(left).tolist()
        kept = [every[i] for i in there]
        yield WORDS, words_payload(words.time, runs, kept)
        if (forms := log.forms_at(here, every)) is not None:
            yield FORMS, forms_payload(kept, [forms[i] for i in there])
    names = {catalog.documents[old].name for old in numbers}
    for name, note in catalog.files.items():
        if name in names:
            yield FILE, json_payload({"name": name, **asdict(note)})


def _runs_left(words: Words, left: np.ndarray) -> np.ndarray:
    starts = np.cumsum(words.runs[:, 2]) - words.runs[:, 2]
    runs = words.runs.copy()
    runs[:, 2] = np.add.reduceat(left.astype(np.int32), starts)
    return runs[runs[:, 2] > 0]
