"""A memory's folder, opened: journal, catalog and checkpoints, for one writer or a reader."""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.deltas import Delta, read_deltas
from unbounded.store.disk import TEMPORARY, Disk, Lock, RealDisk, sync_folder, told, write_file
from unbounded.store.journal import Journal
from unbounded.store.layout import (
    delta_paths,
    generation_of,
    is_new,
    journal_path,
    path_bytes,
    read_about,
    remove,
    remove_litter,
    snapshot_path,
    snapshot_paths,
    write_about,
)
from unbounded.store.records import WATERMARK, new_journal, write_journal
from unbounded.store.snapshot import Snapshot, read_manifest, write_snapshot
from unbounded.store.text_log import TextLog, records_left

KEPT = 2
"""Snapshots that are kept: should the newest be damaged, little has to be read again."""

_TRIES = 8
"""How often a reader looks for a journal that is compacted meanwhile."""


def create(folder: Path, about: Mapping[str, Any], disk: Disk) -> None:
    """Make a memory that has read nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    with Lock(disk, folder):
        # Another process may have been first.
        if is_new(folder):
            identity = secrets.token_hex(8)
            remove(folder / WATERMARK)
            write_file(disk, journal_path(folder, 1), new_journal(identity))
            write_about(disk, folder, {**about, "id": identity, "since": 1})


@final
class Store(TextLog):
    """What was read, where it came from, and the checkpoints of what it taught.

    A writer holds the lock from here to `close`, cuts a torn tail off and says so in `events`. A
    reader sees the journal up to its last whole record, changes nothing and never waits.
    """

    def __init__(self, folder: Path, *, write: bool, disk: Disk | None = None) -> None:
        super().__init__(folder)
        self.disk = disk or RealDisk()
        if is_new(folder):
            raise StoreError(f"{folder} does not exist; give the folder of a memory")
        self.writes = write
        self._lock = Lock(self.disk, folder) if write else None
        self._journal: Journal | None = None
        try:
            self.about = read_about(folder)
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Read the journal that counts from its beginning."""
        self._close_journal()
        self._clear()
        for tries in range(_TRIES):
            self.generation = generation_of(self.folder)
            self.path = journal_path(self.folder, self.generation)
            identity = None if self.old else self.about["id"]
            where = self.disk, self.path, self.generation, identity
            try:
                self._journal = Journal(*where, self._take, self.say, write=self.writes)
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

    @property
    def journal(self) -> Journal:
        """The journal, as long as it is open."""
        if self._journal is None:
            raise StoreError(f"{self.folder} was closed; open it again")
        return self._journal

    # What only the writer may do.

    def undo(self, records: int) -> None:
        """Take back all but so many records, synced or not; the catalog is read again."""
        self.journal.cut(records)
        self._open()

    def compact(self, arrays: Mapping[str, np.ndarray] | None) -> None:
        """Write a journal without the forgotten words, and the state beside it; then switch.

        The rename of the new journal is the moment at which it counts. `arrays` is the state; None
        where reading the journal again is less than a checkpoint.
        """
        self.sync()
        try:
            self._write_compacted(self.generation + 1, arrays)
        finally:
            # The new one or, if that could not be written, the old one as it was.
            try:
                self._open()
            except OSError as error:
                self.close()
                raise StoreError(
                    f"{self.path} could not be opened again ({error.strerror}); nothing is lost: "
                    "look at the disk, then open the memory again"
                ) from error

    def _write_compacted(self, generation: int, arrays: Mapping[str, np.ndarray] | None) -> None:
        """Write that generation beside the present one.

        Before the rename the old generation counts, after it the new one, and opening removes the
        other: a crash at any moment leaves one whole memory.
        """
        disk, path = self.disk, journal_path(self.folder, generation)
        temporary = path.with_name(path.name + TEMPORARY)
        snapshot: Snapshot | None = None
        safe = "nothing but what was forgotten can be lost: make room there and compact again"
        try:
            with told(f"{path} could not be written", safe):
                parts = records_left(self)
                records, end, checksum = write_journal(disk, temporary, self.about["id"], parts)
                if arrays is not None:
                    left = self.catalog.entries
                    where = snapshot_path(self.folder, generation, records)
                    snapshot = Snapshot(where, generation, records, end, left, left, checksum)
                    write_snapshot(disk, snapshot, arrays)
                disk.replace(temporary, path)
                # Here it counts, whatever happens next.
                snapshot = None
                sync_folder(disk, self.folder)
        except StoreError:
            remove(temporary)
            if snapshot is not None:
                remove(snapshot.path)
            raise

    def remove_old(self) -> None:
        """Remove all but the newest full checkpoints, and the deltas before them."""
        good = [snapshot.path for snapshot in self._manifests() if self.valid(snapshot)][:KEPT]
        for path in snapshot_paths(self.folder, self.generation):
            if path not in good:
                remove(path)
        oldest = good[-1].name.removeprefix("snapshot") if good else ""
        for path in delta_paths(self.folder, self.generation):
            if path.stem.removeprefix("steps") < oldest:
                remove(path)

    def remove_invalid(self) -> None:
        """Remove the checkpoints that know something that is forgotten now."""
        for snapshot in self._manifests():
            if not self.valid(snapshot):
                remove(snapshot.path)
        for path in delta_paths(self.folder, self.generation):
            good = [delta.end for delta in read_deltas(path) if self.valid(delta.to)]
            with suppress(OSError):
                if good:
                    os.truncate(path, max(good))
                else:
                    remove(path)

    # What a reader may do too.

    def refresh(self) -> int | None:
        """Follow the writer: how many words have come; None if what was there has changed."""
        before, forgets = self.catalog.positions, len(self._forgets)
        if generation_of(self.folder) != self.generation or not self.journal.follow():
            self._open()
            return None
        return None if len(self._forgets) > forgets else self.catalog.positions - before

    def snapshots(self) -> list[Snapshot]:
        """The full checkpoints from which the present state can be reached, newest first."""
        found = self._manifests()
        if not self.writes:
            # To know at least as much as the writer's checkpoints so far.
            self.refresh()
        for snapshot in found:
            if not self.known(snapshot):
                self._say_foreign(snapshot.path)
        return [snapshot for snapshot in found if self.valid(snapshot)]

    def _manifests(self) -> list[Snapshot]:
        found: list[Snapshot] = []
        for path in snapshot_paths(self.folder, self.generation):
            try:
                found.append(read_manifest(path)[0])
            except (OSError, ValueError, KeyError, TypeError) as error:
                if path.exists():
                    self.say(f"{path} is damaged ({error}) and was not used")
        return found

    def deltas_from(self, snapshot: Snapshot) -> list[Delta]:
        """The deltas that lead on from a snapshot, one after another, as far as they are valid."""
        found: list[Delta] = []
        records = snapshot.records
        for path in delta_paths(self.folder, snapshot.generation):
            for delta in read_deltas(path):
                if not self.known(delta.to):
                    # A reader may be a delta behind.
                    if self.writes:
                        self._say_foreign(path)
                elif delta.before == records and self.valid(delta.to):
                    found.append(delta)
                    records = delta.to.records
        return found

    def _say_foreign(self, path: Path) -> None:
        self.say(f"{path} is of another history than the journal and was not used")

    def known(self, snapshot: Snapshot) -> bool:
        """Whether it was written at a place of this journal."""
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

    def verify(self) -> int:
        """Read every record's checksum again; how many of them can be read."""
        return self.journal.first + sum(1 for _ in self.journal.since(0))

    @property
    def bytes(self) -> int:
        """All that the folder holds on disk, what is being written included."""
        return path_bytes(self.folder)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._journal is None

    def close(self) -> None:
        """Let go of everything; what was appended and not synced may be lost in a power cut."""
        self._close_journal()
        if self._lock is not None:
            self._lock.release()
        self._lock = None

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._journal = None
