"""A memory's folder, opened: journal, ledger and snapshots together, for one writer or a reader."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.catalog import Catalog, Document, Left
from unbounded.store.checkpoints import Checkpoints, History
from unbounded.store.compaction import compact
from unbounded.store.disk import Disk, RealDisk, write_file
from unbounded.store.journal import Journal
from unbounded.store.layout import (
    folder_bytes,
    generation_of,
    is_new,
    journal_path,
    read_about,
    remove,
    remove_litter,
    write_about,
)
from unbounded.store.lock import Lock
from unbounded.store.records import (
    DOCUMENT,
    FORGET,
    WORDS,
    Ranges,
    Record,
    Runs,
    Words,
    json_payload,
    new_journal,
    ranges_payloads,
    read_json,
    read_ranges,
    read_words,
    words_payload,
)
from unbounded.store.snapshot import Snapshot
from unbounded.store.watermark import NAME as MARK

_TRIES = 8
"""How often a reader looks for a journal that is compacted meanwhile."""


def create(folder: Path, about: Mapping[str, Any], disk: Disk) -> None:
    """Make a memory that has read nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(disk, folder)
    try:
        # Another process may have been first.
        if is_new(folder):
            identity = secrets.token_hex(8)
            remove(folder / MARK)
            write_file(disk, journal_path(folder, 1), new_journal(identity))
            write_about(disk, folder, {**about, "id": identity, "since": 1})
    finally:
        lock.release()


@final
class Store(History):
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
        self.writes = write
        self._lock = Lock(self.disk, folder) if write else None
        self._journal: Journal | None = None
        self.checkpoints = Checkpoints(self.disk, folder, self, self.events)
        try:
            self.about = read_about(folder)
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Read the journal that counts from its beginning."""
        self._close_journal()
        self.catalog = Catalog()
        self._forgets: list[tuple[int, int]] = []
        for tries in range(_TRIES):
            self.generation = generation_of(self.folder)
            self.path = journal_path(self.folder, self.generation)
            identity = None if self.old else self.about["id"]
            where = self.disk, self.path, self.generation, identity
            try:
                self._journal = Journal(*where, self._take, self.events, write=self.writes)
                break
            except FileNotFoundError:
                # It was compacted a moment ago.
                if tries == _TRIES - 1:
                    raise
        if self.writes:
            remove_litter(self.folder, self.generation)

    @property
    def old(self) -> bool:
        """Whether the journal is of a format in which nothing says which memory it is of."""
        return self.generation < int(self.about["since"])

    def renew(self) -> None:
        """From the next compaction on the journal knows which memory it is of."""
        since = {"id": self.about["id"] or secrets.token_hex(8), "since": self.generation + 1}
        self.about = {**self.about, **since}
        write_about(self.disk, self.folder, self.about)

    def _take(self, record: Record) -> None:
        try:
            if record.kind == DOCUMENT:
                named = read_json(record.payload)
                self.catalog.add_document(Document(str(named["name"]), float(str(named["time"]))))
            elif record.kind == WORDS:
                self.catalog.add_words(record.number, record.start, read_words(record.payload))
            elif record.kind == FORGET:
                ranges = read_ranges(record.payload)
                self.catalog.forget(ranges)
                self._forgets.append((record.number, min(start for start, _ in ranges)))
            else:
                raise ValueError(f"a record of kind {record.kind}")
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path} makes no sense at byte {record.start:,} ({error}); "
                "restore the file from a copy"
            ) from None

    @property
    def journal(self) -> Journal:
        """The journal, as long as it is open."""
        if self._journal is None:
            raise StoreError(f"{self.folder} was closed; open it again")
        return self._journal

    @property
    def records(self) -> int:
        """How many records the journal has."""
        return self.journal.records

    @property
    def end(self) -> int:
        """Where they end."""
        return self.journal.end

    # What only the writer may do.

    def append(
        self, words: Sequence[str], documents: Sequence[str], runs: Runs, time: float
    ) -> None:
        """Write down a block of words; not durable before `sync`.

        A run's document is a number into `documents`.
        """
        fresh = [name for name in dict.fromkeys(documents) if self.catalog.number_of(name) is None]
        parts = [(DOCUMENT, json_payload({"name": name, "time": time})) for name in fresh]
        numbers = {name: len(self.catalog.documents) + i for i, name in enumerate(fresh)}
        known = [numbers.get(name, self.catalog.number_of(name) or 0) for name in documents]
        numbered = np.asarray(runs, np.int64).copy()
        numbered[:, 0] = np.array(known, np.int64)[runs[:, 0]]
        self._append([*parts, (WORDS, words_payload(time, numbered, words))])

    def forget(self, ranges: Ranges) -> None:
        """Write down that words are forgotten, durable when it returns."""
        self._append([(FORGET, payload) for payload in ranges_payloads(ranges)])
        self.sync()
        self.checkpoints.forget()

    def _append(self, parts: Sequence[tuple[int, bytes]]) -> None:
        for record in self.journal.append(parts):
            self._take(record)

    def undo(self, records: int) -> None:
        """Take back all but so many records, synced or not; the ledger is read again."""
        self.checkpoints.stop()
        self.journal.cut(records)
        self._open()
        self.checkpoints.forget()

    def sync(self) -> None:
        """Return once all that was appended is on disk: it is acknowledged."""
        self.journal.sync()

    def snapshot(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set a state aside, the one after all records so far; older ones are then removed."""
        self.sync()
        self.checkpoints.snapshot(arrays)

    def compact(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a journal without the forgotten words, and the state beside it; then switch.

        The rename of the new journal is the moment at which it counts. `arrays` is the state.
        """
        self.sync()
        self.checkpoints.close()
        try:
            later, identity = self.generation + 1, self.about["id"]
            given = self.catalog, self.blocks(), arrays
            compact(self.disk, self.folder, later, identity, *given)
        finally:
            # The new one or, if that could not be written, the old one as it was.
            try:
                self._open()
                newest = self.snapshots()[:1]
                there = newest and newest[0].records == self.records
                self.checkpoints.go_on_from(newest[0] if there else None, None)
            except OSError as error:
                self.close()
                raise StoreError(
                    f"{self.path} could not be opened again ({error.strerror}); nothing is lost: "
                    "look at the disk, then open the memory again"
                ) from error

    # What a reader may do too.

    def refresh(self) -> int | None:
        """Follow the writer: how many words have come; None if what was there has changed."""
        before, forgets = self.catalog.positions, len(self._forgets)
        if generation_of(self.folder) != self.generation or not self.journal.follow(self.events):
            self._open()
            return None
        return None if len(self._forgets) > forgets else self.catalog.positions - before

    def snapshots(self) -> list[Snapshot]:
        """Those from which the present state can be reached, newest first."""
        return self.checkpoints.snapshots()

    def catch_up(self) -> None:
        """Know at least as much as what the writer has set aside so far."""
        if not self.writes:
            self.refresh()

    def known(self, snapshot: Snapshot) -> bool:
        """Whether it was set aside at a place of this journal."""
        records, checksum = snapshot.records, snapshot.checksum
        # What was written in format 1 says no more than how long the journal was.
        same = self.journal.checksum_of(records) == checksum or (self.old and checksum is None)
        where = snapshot.end, snapshot.positions
        return same and where == (self.journal.end_of(records), self.catalog.positions_at(records))

    def valid(self, snapshot: Snapshot) -> bool:
        """Whether that is so, and nothing that it has seen was forgotten since."""
        positions = snapshot.positions
        return (
            self.known(snapshot)
            and all(first >= positions for n, first in self._forgets if n >= snapshot.records)
            and self.catalog.entries_before(positions) == snapshot.entries
        )

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
        start, stop = max(start, 0), min(stop, self.catalog.positions)
        out: list[str] = []
        if start >= stop:
            return out
        first, last = self.catalog.blocks_of(np.array([start, stop - 1])).tolist()
        for block in range(first, last + 1):
            position, number, at = self.catalog.block(block)
            words = read_words(self.journal.read(at, number).payload).words
            part = range(max(start - position, 0), min(stop - position, len(words)))
            left = self.catalog.kept(position, len(words))
            out += [words[i] for i in part if left[i]]
        return out

    def marker(self) -> Snapshot:
        """Where the journal stands, for `replay` to go on from."""
        catalog, records = self.catalog, self.records
        here = self.folder, self.generation, records, self.end, catalog.positions, catalog.entries
        return Snapshot(*here, self.journal.checksum_of(records))

    def documents_left(self) -> list[Document]:
        """The documents of which there is a word left."""
        lines = self.catalog.lines()
        left = self.catalog.kept(0, self.catalog.positions)
        used = np.add.reduceat(left, lines.starts) > 0 if len(lines.starts) else left
        return [self.catalog.documents[i] for i in np.unique(lines.documents[used]).tolist()]

    def verify(self) -> int:
        """Read every record's checksum again; how many words can be read."""
        return sum(words.count for words, _ in self.blocks())

    @property
    def bytes(self) -> int:
        """All that the folder holds on disk, what is being written included."""
        return folder_bytes(self.folder)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._journal is None

    def close(self) -> None:
        """Let go of everything; what was appended and not synced may be lost in a power cut."""
        self.checkpoints.close()
        self._close_journal()
        if self._lock is not None:
            self._lock.release()
        self._lock = None

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._journal = None
