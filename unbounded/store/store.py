"""A memory's folder, opened: journal, ledger and snapshots together, for one writer or a reader."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.acknowledged import NAME as MARK
from unbounded.store.acknowledged import Acknowledged, read_mark
from unbounded.store.aside import Aside
from unbounded.store.compaction import compact
from unbounded.store.disk import Disk, RealDisk, write_file
from unbounded.store.journal import Journal, check_start, damaged, read_record, scan
from unbounded.store.layout import (
    generation_of,
    is_new,
    journal_path,
    read_about,
    remove,
    remove_litter,
    write_about,
)
from unbounded.store.ledger import Document, Ledger, Left
from unbounded.store.lock import Lock
from unbounded.store.records import (
    DOCUMENT,
    FORGET,
    START,
    WORDS,
    Ranges,
    Record,
    Runs,
    Words,
    json_payload,
    ranges_payload,
    read_json,
    read_ranges,
    read_words,
    records,
    to_bytes,
    words_payload,
)
from unbounded.store.snapshot import Snapshot


def create(folder: Path, about: Mapping[str, Any], disk: Disk) -> None:
    """Make a memory that has read nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(disk, folder)
    try:
        # Another process may have been first.
        if is_new(folder):
            remove(folder / MARK)
            write_file(disk, journal_path(folder, 1), START)
            write_about(disk, folder, about)
    finally:
        lock.release()


@final
class Store:
    """What was read, where it came from, and the states that were set aside.

    A writer holds the lock from here to `close`, cuts a torn tail off and says so in `events`. A
    reader sees the journal up to its last whole record, changes nothing and never waits.
    """

    def __init__(self, folder: Path, *, write: bool, disk: Disk | None = None) -> None:
        self.folder = folder
        self.disk = disk or RealDisk()
        self.events: list[str] = []
        if is_new(folder):
            raise StoreError(f"{folder} does not exist; give the folder of a memory")
        self._lock = Lock(self.disk, folder) if write else None
        self._file = -1
        self._journal: Journal | None = None
        self._mark: Acknowledged | None = None
        self._synced = 0
        self.aside = Aside(self.disk, folder, self.marker, self._valid, self.events)
        try:
            self.about = read_about(folder)
            self._open_generation()
            if write:
                self._start_writing()
        except BaseException:
            self.close()
            raise

    def _open_generation(self) -> None:
        """Read the journal that counts from its beginning."""
        for tries in range(8):
            self.generation = generation_of(self.folder)
            self.path = journal_path(self.folder, self.generation)
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            try:
                # Before the journal, which may grow meanwhile but never shrinks below it.
                mark = read_mark(self.folder, self.generation)
                self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                break
            except FileNotFoundError:
                # It was compacted a moment ago.
                if tries == 7:
                    raise
        if mark is None:
            self.events.append(f"{self.folder / MARK} is damaged and was not used")
        check_start(self._file, self.path)
        self.ledger = Ledger()
        self._forgets: list[tuple[int, int]] = []
        self.records, self.end = 0, len(START)
        self._scan()
        if self.end < (mark or 0):
            raise damaged(self.path, self.end)

    def _scan(self) -> int:
        """Take in the records that have come; how many words."""
        before = self.ledger.positions
        for record in scan(self._file, self.end, self.records):
            self._take(record)
        return self.ledger.positions - before

    def _take(self, record: Record) -> None:
        try:
            if record.kind == DOCUMENT:
                named = read_json(record.payload)
                self.ledger.add_document(Document(str(named["name"]), float(str(named["time"]))))
            elif record.kind == WORDS:
                self.ledger.add_words(record.number, record.start, read_words(record.payload))
            elif record.kind == FORGET:
                ranges = read_ranges(record.payload)
                self.ledger.forget(ranges)
                self._forgets.append((record.number, min(start for start, _ in ranges)))
            else:
                raise ValueError(f"a record of kind {record.kind}")
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path} makes no sense at byte {record.start:,} ({error}); "
                "restore the file from a copy"
            ) from None
        self.records, self.end = record.number + 1, record.end

    def _start_writing(self) -> None:
        torn = os.fstat(self._file).st_size - self.end
        self._journal = Journal(self.disk, self.path, self.end)
        if torn:
            self.events.append(
                f"{self.path} had a torn end: {torn:,} bytes from byte {self.end:,} on were never "
                "acknowledged and have been cut off"
            )
        remove_litter(self.folder, self.generation)
        if self._mark is None:
            self._mark = Acknowledged(self.disk, self.folder)
        self._acknowledge()

    # What only the writer may do.

    def append(
        self, words: Sequence[str], documents: Sequence[str], runs: Runs, time: float
    ) -> None:
        """Write down a block of words; not durable before `sync`.

        A run's document is a number into `documents`.
        """
        fresh = [name for name in dict.fromkeys(documents) if self.ledger.number_of(name) is None]
        parts = [(DOCUMENT, json_payload({"name": name, "time": time})) for name in fresh]
        numbers = {name: len(self.ledger.documents) + i for i, name in enumerate(fresh)}
        known = [numbers.get(name, self.ledger.number_of(name) or 0) for name in documents]
        numbered = np.asarray(runs, np.int32).copy()
        numbered[:, 0] = np.array(known, np.int32)[runs[:, 0]]
        self._append([*parts, (WORDS, words_payload(time, numbered, words))])

    def forget(self, ranges: Ranges) -> None:
        """Write down that words are forgotten, durable when it returns."""
        self._append([(FORGET, ranges_payload(ranges))])
        self.sync()
        self.aside.forget()

    def _append(self, parts: Sequence[tuple[int, bytes]]) -> None:
        data = b"".join(
            to_bytes(kind, self.records + i, part) for i, (kind, part) in enumerate(parts)
        )
        self._writing.append(data)
        for record in records(memoryview(data), self.end, self.records, self.end):
            self._take(record)

    def undo(self, end: int) -> None:
        """Take back what was appended behind `end` and not synced; the ledger is read again."""
        self._writing.cut(end)
        self._open_generation()

    def sync(self) -> None:
        """Return once all that was appended is on disk: it is acknowledged."""
        if self._synced < self.end:
            self._writing.sync()
            self._acknowledge()

    def _acknowledge(self) -> None:
        self._synced = self.end
        # A mark that lags is no harm.
        if self._mark is not None:
            with suppress(OSError):
                self._mark.mark(self.generation, self.end)

    @property
    def _writing(self) -> Journal:
        if self._journal is None:
            raise StoreError(f"{self.folder} was opened for reading; open it for writing")
        return self._journal

    def snapshot(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set a state aside, the one after all records so far; older ones are then removed."""
        self.sync()
        self.aside.snapshot(arrays)

    def compact(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a journal without the forgotten words, and the state beside it; then switch.

        The rename of the new journal is the moment at which it counts. `arrays` is the state.
        """
        self.sync()
        self.aside.close()
        self._writing.close()
        self._journal = None
        try:
            later = self.generation + 1
            compact(self.disk, self.folder, later, self.ledger, self.blocks(), arrays)
        finally:
            # The new one or, if that could not be written, the old one as it was.
            try:
                self._open_generation()
                self._start_writing()
                newest = self.snapshots()[:1]
                there = newest and newest[0].records == self.records
                self.aside.go_on_from(newest[0] if there else None, None)
            except OSError as error:
                self.close()
                raise StoreError(
                    f"{self.path} could not be opened again ({error.strerror}); nothing is lost: "
                    "look at the disk, then open the memory again"
                ) from error

    # What a reader may do too.

    def refresh(self) -> int | None:
        """Follow the writer: how many words have come; None if what was there has changed."""
        if generation_of(self.folder) != self.generation:
            self._open_generation()
            return None
        forgets = len(self._forgets)
        came = self._scan()
        return None if len(self._forgets) > forgets else came

    def snapshots(self) -> list[Snapshot]:
        """Those from which the present state can be reached, newest first."""
        return self.aside.snapshots()

    def _valid(self, snapshot: Snapshot) -> bool:
        """Whether nothing that it has seen was forgotten since; and it is not ahead of us."""
        return snapshot.end <= self.end and all(
            first >= snapshot.positions
            for number, first in self._forgets
            if number >= snapshot.records
        )

    def replay(self, start: Snapshot | None = None) -> Iterator[list[str]]:
        """What is left of each block of words, as it was read, after those a snapshot has seen."""
        for words, left in self.blocks(start):
            if left.any():
                every = words.words
                yield every if left.all() else [every[i] for i in np.flatnonzero(left)]

    def blocks(self, start: Snapshot | None = None) -> Iterator[tuple[Words, Left]]:
        """Each block of words as it was read, and which of them are left."""
        end, number = (len(START), 0) if start is None else (start.end, start.records)
        position = 0 if start is None else start.positions
        for record in scan(self._file, end, number):
            if record.number >= self.records:
                break
            if record.kind == WORDS:
                words = read_words(record.payload)
                yield words, self.ledger.kept(position, words.count)
                position += words.count

    def words(self, start: int, stop: int) -> list[str]:
        """The words at these positions, forgotten ones left out."""
        start, stop = max(start, 0), min(stop, self.ledger.positions)
        out: list[str] = []
        if start >= stop:
            return out
        first, last = self.ledger.blocks_of(np.array([start, stop - 1])).tolist()
        for block in range(first, last + 1):
            position, number, at = self.ledger.block(block)
            record = read_record(self._file, self.path, at, number)
            words = read_words(record.payload).words
            part = range(max(start - position, 0), min(stop - position, len(words)))
            left = self.ledger.kept(position, len(words))
            out += [words[i] for i in part if left[i]]
        return out

    def marker(self) -> Snapshot:
        """Where the journal stands, for `replay` to go on from."""
        ledger = self.ledger
        return Snapshot(
            self.folder, self.generation, self.records, self.end, ledger.positions, ledger.entries
        )

    def documents_left(self) -> list[Document]:
        """The documents of which there is a word left."""
        lines = self.ledger.lines()
        left = self.ledger.kept(0, self.ledger.positions)
        used = np.add.reduceat(left, lines.starts) > 0 if len(lines.starts) else left
        return [self.ledger.documents[i] for i in np.unique(lines.documents[used]).tolist()]

    def verify(self) -> int:
        """Read every record's checksum again; how many words can be read."""
        check_start(self._file, self.path)
        return sum(words.count for words, _ in self.blocks())

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._file < 0

    def close(self) -> None:
        """Let go of everything; what was appended and not synced may be lost in a power cut."""
        self.aside.close()
        for part in (self._journal, self._mark):
            if part is not None:
                part.close()
        if self._file >= 0:
            os.close(self._file)
        if self._lock is not None:
            self._lock.release()
        self._journal = self._mark = self._lock = None
        self._file = -1
