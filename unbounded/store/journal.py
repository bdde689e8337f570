"""A journal, opened: every record checked, a running checksum behind each; one writer appends."""

import fcntl
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import final

from unbounded.errors import StoreError
from unbounded.store import records as encoding
from unbounded.store.disk import Disk, write_all
from unbounded.store.records import (
    HEAD,
    IDENTITY,
    START,
    WATERMARK,
    Mark,
    Record,
    chained,
    read_json,
    read_mark,
    record_at,
    records,
    to_bytes,
    write_mark,
)

_WINDOW = 1 << 23
"""Bytes held at once while a journal is gone through."""


def scan(file: int, start: int, number: int) -> Iterator[Record]:
    """The records of an open file from a place on, up to the first that is not whole.

    A record's payload is valid until the next is asked for.
    """
    window = _WINDOW
    while True:
        data = memoryview(os.pread(file, window, start))
        base = start
        for found in records(data, start, number, base):
            start, number = found.end, number + 1
            yield found
        if len(data) < window:
            return
        if start > base:
            window = _WINDOW
        elif window > encoding.LONGEST + HEAD.size:
            return
        else:
            window *= 4


@final
class Journal:
    """What was written down, in order: the truth. `take` is told each record that is found.

    A writer cuts a torn tail off and says so, to `say`; a reader changes nothing. `records`
    are whole and end at `end`. Opening refuses a journal that lacks what was acknowledged, and one
    of another memory than `identity`.
    """

    def __init__(
        self,
        disk: Disk,
        path: Path,
        generation: int,
        identity: str | None,
        take: Callable[[Record], None],
        say: Callable[[str], None],
        *,
        write: bool,
    ) -> None:
        self.path, self.generation = path, generation
        self._disk, self._identity, self._take, self._say = disk, identity, take, say
        # Behind each number of records: where they end, and their running checksum.
        self._ends, self._checksums = array("q", [len(START)]), array("I", [0])
        self._out, self._broken, self._synced, self._safe = -1, False, 0, 0
        # Before the journal, which may grow meanwhile.
        mark = self._read_mark()
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._check_start()
            self._scan()
            self._check(mark)
            self._keep_safe(mark)
            if (
                mark is None
                and self.records > self.first
                and not (path.parent / WATERMARK).exists()
            ):
                say(f"{path.parent / WATERMARK} is missing: nobody can tell what was lost")
            if write:
                self._start_writing(mark)
        except BaseException:
            self.close()
            raise

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self._ends) - 1

    @property
    def end(self) -> int:
        """Where they end."""
        return self._ends[-1]

    @property
    def first(self) -> int:
        """The number of the first record that `take` was told."""
        return 0 if self._identity is None else 1

    @property
    def watermark(self) -> int:
        """How many of them were acknowledged; all, if nothing says so."""
        return self._safe or self.records

    def end_of(self, records: int) -> int | None:
        """Where so many records end; None if there are fewer."""
        return self._ends[records] if 0 <= records <= self.records else None

    def checksum_of(self, records: int) -> int | None:
        """The running checksum of so many records; None if there are fewer."""
        return self._checksums[records] if 0 <= records <= self.records else None

    # Opening.

    def _read_mark(self) -> Mark | None:
        try:
            return read_mark(self.path.parent)
        except ValueError as error:
            self._say(f"{self.path.parent / WATERMARK} is damaged ({error}) and was not used")
            return None

    def _check_start(self) -> None:
        if os.pread(self._file, len(START), 0) != START:
            raise StoreError(
                f"{self.path} is damaged at byte 0: it does not begin as a journal does; "
                "restore it from a copy"
            )

    def _scan(self) -> None:
        for record in scan(self._file, self.end, self.records):
            self._add(record)
        if self.records < self.first:
            raise damaged(self.path, self.end)

    def _add(self, record: Record) -> None:
        if record.kind == IDENTITY or record.number < self.first:
            self._check_identity(record)
        else:
            try:
                self._take(record)
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(
                    f"{self.path} makes no sense at byte {record.start:,} ({error}); restore the "
                    "file from a copy"
                ) from None
        self._checksums.append(chained(self._checksums[-1], record.crc))
        self._ends.append(record.end)

    def _check_identity(self, record: Record) -> None:
        found = read_json(record.payload).get("memory") if record.kind == IDENTITY else None
        if record.number or found != self._identity:
            raise StoreError(
                f"{self.path} is the journal of another memory than the one it lies in; restore "
                "the whole folder from one copy"
            )

    def _check(self, mark: Mark | None) -> None:
        """Refuse a journal that lacks what was acknowledged."""
        while mark is not None and not self._has(mark):
            before = mark
            with suppress(ValueError):
                mark = read_mark(self.path.parent)
            if mark != before:
                # The writer has taken something back, and the mark with it.
                continue
            if before.generation > self.generation:
                raise StoreError(
                    f"{self.path} is older than what was acknowledged (journal "
                    f"{before.generation}); restore the folder from a copy, or remove the file "
                    "'acknowledged' in it to go on with this one"
                )
            if before.end > self.end:
                raise damaged(self.path, self.end)
            raise StoreError(
                f"{self.path} is of another history than 'acknowledged' beside it (byte "
                f"{before.end:,}); restore both from one copy, or remove 'acknowledged' to go on "
                "with this journal"
            )

    def _has(self, mark: Mark) -> bool:
        if mark.generation != self.generation:
            # Compaction marks the new journal as soon as it is there.
            return mark.generation < self.generation
        if mark.checksum is None:
            return self._identity is None and mark.end <= self.end
        return self.checksum_of(mark.records) == mark.checksum

    def _start_writing(self, mark: Mark | None) -> None:
        self._out = self._disk.open(self.path, os.O_RDWR)
        try:
            # The file `lock` can be removed; as long as its words are there, this cannot.
            fcntl.flock(self._out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{self.path} is being written by a process whose file 'lock' was removed; end "
                "that process first"
            ) from None
        if torn := os.fstat(self._out).st_size - self.end:
            os.ftruncate(self._out, self.end)
            known = mark is not None and mark.generation == self.generation
            self._say(
                f"{self.path} had a torn end: {torn:,} bytes from byte {self.end:,} on have been "
                "cut off; "
                + (
                    "none of them was marked as acknowledged"
                    if known
                    else "without 'acknowledged' nobody knows whether they were acknowledged"
                )
            )
        os.lseek(self._out, self.end, os.SEEK_SET)
        # What a reader may have seen must not be gone after a power cut.
        self._synced = -1
        self.sync()

    # Following a writer.

    def follow(self) -> bool:
        """Take in what has come; False if something was taken back: then open it again."""
        mark = self._read_mark()
        if mark is not None and mark.generation == self.generation and mark.records < self._safe:
            # An undo.
            return False
        # What else was acknowledged is there.
        checksum = self._checksums[self._safe]
        for number in range(self._safe, self.records):
            head = os.pread(self._file, HEAD.size, self._ends[number])
            if len(head) < HEAD.size:
                return False
            checksum = chained(checksum, HEAD.unpack(head)[1])
        if checksum != self._checksums[-1]:
            return False
        self._scan()
        if mark is not None and not self._has(mark):
            return False
        self._keep_safe(mark)
        return True

    def _keep_safe(self, mark: Mark | None) -> None:
        """Remember what cannot be taken back any more."""
        if mark is not None and mark.generation == self.generation and mark.checksum is not None:
            self._safe = mark.records

    # Writing.

    def append(self, parts: Sequence[tuple[int, bytes]]) -> list[Record]:
        """Write records of these kinds and payloads, not durable before `sync`; what they are.

        What could not be read back is refused before anything is written.
        """
        self._check_whole()
        data = b"".join(
            to_bytes(kind, self.records + i, payload) for i, (kind, payload) in enumerate(parts)
        )
        found = list(records(memoryview(data), self.end, self.records, self.end))
        assert len(found) == len(parts)
        try:
            write_all(self._disk, self._out, data)
        except OSError as error:
            self._truncate()
            raise StoreError(
                f"{self.path} could not be written ({error.strerror}); nothing that was "
                "acknowledged is lost: make room there and go on"
            ) from error
        for record in found:
            self._checksums.append(chained(self._checksums[-1], record.crc))
            self._ends.append(record.end)
        return found

    def cut(self, count: int) -> None:
        """Take back all but so many records, even if they were acknowledged."""
        del self._checksums[count + 1 :], self._ends[count + 1 :]
        if count < self._synced:
            # First, or a crash would leave a mark of what is not there.
            self._mark()
        self._truncate()
        self._synced = min(self._synced, count)
        self._sync()

    def _truncate(self) -> None:
        try:
            os.ftruncate(self._out, self.end)
            os.lseek(self._out, self.end, os.SEEK_SET)
        except OSError:
            self._broken = True

    def sync(self) -> None:
        """Return once everything is on disk: it is acknowledged."""
        if self._synced != self.records:
            self._sync()
            self._synced = self.records
            # A mark that lags is no harm.
            with suppress(OSError):
                self._mark()

    def _sync(self) -> None:
        self._check_whole()
        try:
            self._disk.sync(self._out)
        except OSError as error:
            # Pages that failed to be written count as clean afterwards: asking again would lie.
            self._broken = True
            raise StoreError(
                f"{self.path} could not be synced ({error.strerror}); nothing that was "
                "acknowledged is lost: look at the disk, then open the memory again"
            ) from error

    def _mark(self) -> None:
        here = Mark(self.generation, self.records, self.end, self._checksums[-1])
        write_mark(self._disk, self.path.parent, here)

    def _check_whole(self) -> None:
        if self._out < 0:
            raise StoreError(f"{self.path.parent} was opened for reading; open it for writing")
        if self._broken:
            raise StoreError(
                f"{self.path} could not be written before; close the memory and open it again"
            )

    # Reading.

    def since(self, count: int) -> Iterator[Record]:
        """The records behind so many, as far as they are known here."""
        for record in scan(self._file, self._ends[count], count):
            if record.number >= self.records:
                break
            if record.kind != IDENTITY:
                yield record

    def read(self, number: int) -> Record:
        """The record of that number."""
        start, end = self._ends[number : number + 2]
        found = record_at(memoryview(self.bytes_at(start, end - start)), start, number, start)
        if found is None:
            raise damaged(self.path, start)
        return found

    def bytes_at(self, start: int, size: int) -> bytes:
        """What lies at a place."""
        return os.pread(self._file, size, start)

    def close(self) -> None:
        """Let go of the files."""
        for file in (self._out, self._file):
            if file >= 0:
                os.close(file)
        self._out = self._file = -1


def damaged(path: Path, start: int) -> StoreError:
    """A record that was acknowledged is not there any more."""
    return StoreError(
        f"{path} is damaged at byte {start:,}: a record that was acknowledged cannot be read; "
        "restore the file from a copy, or remove the file 'acknowledged' beside it to go on with "
        "what lies before"
    )
