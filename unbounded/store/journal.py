"""The journal's file: appended to, synced, scanned; a failed append leaves it as it was."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import final

from unbounded.errors import StoreError
from unbounded.store.disk import Disk, write_all
from unbounded.store.records import LONGEST, START, Record, record_at, records

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
        elif window > LONGEST:
            return
        else:
            window *= 4


def check_start(file: int, path: Path) -> None:
    """Refuse a file that is no journal."""
    if os.pread(file, len(START), 0) != START:
        raise StoreError(
            f"{path} is damaged at byte 0: it does not begin as a journal does; "
            "restore it from a copy"
        )


def read_record(file: int, path: Path, start: int, number: int) -> Record:
    """The one record at a place where there must be one."""
    data = os.pread(file, 1 << 16, start)
    if (found := record_at(memoryview(data), start, number, start)) is None:
        data = os.pread(file, LONGEST, start)
        found = record_at(memoryview(data), start, number, start)
    if found is None:
        raise damaged(path, start)
    return found


def damaged(path: Path, start: int) -> StoreError:
    """A record that was acknowledged is not there any more."""
    return StoreError(
        f"{path} is damaged at byte {start:,}: a record that was acknowledged cannot be read; "
        "restore the file from a copy, or remove the file 'acknowledged' beside it to go on with "
        "what lies before"
    )


@final
class Journal:
    """Appends to a journal that ends, or is cut, at `end`."""

    def __init__(self, disk: Disk, path: Path, end: int) -> None:
        self.path = path
        self.end = end
        self._disk = disk
        self.broken = False
        self._file = disk.open(path, os.O_RDWR)
        try:
            if os.fstat(self._file).st_size > end:
                os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
            # What a reader may have seen must not be gone after a power cut.
            self.sync()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, data: bytes) -> None:
        """Write at the end; not yet durable."""
        self._check_whole()
        try:
            write_all(self._disk, self._file, data)
        except OSError as error:
            self.cut(self.end)
            raise StoreError(
                f"{self.path} could not be written ({error.strerror}); nothing that was "
                "acknowledged is lost: make room there and go on"
            ) from error
        self.end += len(data)

    def cut(self, end: int) -> None:
        """Take back what was appended behind `end` and not synced."""
        try:
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
        except OSError:
            self.broken = True
        self.end = end

    def sync(self) -> None:
        """Return once everything is on disk."""
        self._check_whole()
        try:
            self._disk.sync(self._file)
        except OSError as error:
            # Pages that failed to be written count as clean afterwards: asking again would lie.
            self.broken = True
            raise StoreError(
                f"{self.path} could not be synced ({error.strerror}); nothing that was "
                "acknowledged is lost: look at the disk, then open the memory again"
            ) from error

    def _check_whole(self) -> None:
        if self.broken:
            raise StoreError(
                f"{self.path} could not be written before; close the memory and open it again"
            )

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
