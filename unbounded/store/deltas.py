"""Steps from a snapshot on: what has come since, and the small rest; a fraction of a snapshot.

    steps-GENERATION-RECORDS.log    begins at the snapshot after so many records of the journal
      record   as in the journal (`records.py`), two a delta
      growth   JSON (where it stands, which arrays), then the arrays; added to what was before
      rest     the same; in the place of what was before, so only the last one is read

A delta that is not whole ends the file: what it held is read again from the journal.
"""

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.store import records
from unbounded.store.disk import Disk, told, write_all
from unbounded.store.records import HEAD, record_at, to_bytes
from unbounded.store.snapshot import ROOM, Snapshot

START = b"unbounded steps 1\n"

GROWTH, REST = 16, 17

Arrays = dict[str, np.ndarray]

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Delta:
    """Where a delta leads from and to, and where it lies in its file."""

    before: int
    """How many records the state had seen before it."""
    to: Snapshot
    growth: tuple[int, int]
    rest: tuple[int, int]

    @property
    def path(self) -> Path:
        """The file that it lies in."""
        return self.to.path

    @property
    def end(self) -> int:
        """Where the next delta begins."""
        return self.rest[1]


@final
class Deltas:
    """Appends deltas to a file, which is cut where the last good one ends."""

    def __init__(self, disk: Disk, path: Path, end: int, records: int) -> None:
        """Go on behind `end`, 0 for a new file, from the state after so many records."""
        self.path = path
        self.records = records
        self._disk = disk
        self._number = 0
        self._file = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            if end:
                self._number = 2 * sum(1 for delta in read_deltas(path) if delta.end <= end)
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
            if not end:
                write_all(disk, self._file, START)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, to: Snapshot, growth: Mapping[str, np.ndarray], rest: Arrays) -> None:
        """Write a delta, and return once it is on disk; if that fails, the file is of no use."""
        about = {"before": self.records, **asdict(to), "path": self.path.name}
        data = b"".join(
            to_bytes(kind, self._number + i, _packed(about if i == 0 else {}, arrays))
            for i, (kind, arrays) in enumerate(((GROWTH, growth), (REST, rest)))
        )
        with told(f"{self.path} could not be written", ROOM):
            write_all(self._disk, self._file, data)
            self._disk.sync(self._file)
        self._number += 2
        self.records = to.records

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def read_deltas(path: Path) -> Iterator[Delta]:
    """The deltas of a file up to the first that is not whole; the rest of each is not looked at."""
    with suppress(FileNotFoundError), path.open("rb") as opened:
        file = opened.fileno()
        if os.pread(file, len(START), 0) != START:
            return
        size, at, number = os.fstat(file).st_size, len(START), 0
        while True:
            growth = (at, _end(file, at))
            rest = (growth[1], _end(file, growth[1]))
            if not at < growth[1] < rest[1] <= size:
                return
            try:
                about, _ = _read(file, growth, GROWTH, number)
                before = int(about.pop("before"))
                to = Snapshot(**{**about, "path": path})
            except (ValueError, KeyError, TypeError):
                return
            yield Delta(before, to, growth, rest)
            at, number = rest[1], number + 2


def read_growth(delta: Delta) -> Arrays:
    """What has come; `ValueError` if it is damaged."""
    return _arrays(delta, delta.growth, GROWTH)


def read_rest(delta: Delta) -> Arrays:
    """The small rest of the state behind a delta; `ValueError` if it is damaged."""
    return _arrays(delta, delta.rest, REST)


def _arrays(delta: Delta, place: tuple[int, int], kind: int) -> Arrays:
    with delta.path.open("rb") as opened:
        try:
            return _read(opened.fileno(), place, kind, None)[1]
        except (KeyError, TypeError) as error:
            raise ValueError(str(error)) from None


def _end(file: int, at: int) -> int:
    """Where the record at a place says that it ends; the place itself if there is none."""
    head = os.pread(file, HEAD.size, at)
    if len(head) < HEAD.size or (length := HEAD.unpack(head)[0]) > records.LONGEST:
        return at
    return at + HEAD.size + int(length)


def _read(
    file: int, place: tuple[int, int], kind: int, number: int | None
) -> tuple[dict[str, Any], Arrays]:
    data = memoryview(os.pread(file, place[1] - place[0], place[0]))
    if number is None and len(data) >= HEAD.size:
        number = int(HEAD.unpack_from(data)[3])
    found = record_at(data, 0, number or 0)
    if found is None or found.kind != kind:
        raise ValueError(f"damaged between bytes {place[0]:,} and {place[1]:,}")
    return _unpacked(found.payload)


def _packed(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    table = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = json.dumps({"about": about, "arrays": table}).encode()
    bodies = (np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return b"".join((_LENGTH.pack(len(head)), head, *bodies))


def _unpacked(payload: memoryview) -> tuple[dict[str, Any], Arrays]:
    (length,) = _LENGTH.unpack_from(payload)
    at = _LENGTH.size + length
    head = json.loads(bytes(payload[_LENGTH.size : at]))
    arrays: Arrays = {}
    for name, kind, shape in head["arrays"]:
        dtype = np.dtype(kind)
        if dtype.hasobject:
            raise ValueError("objects")
        count = int(np.prod(shape, dtype=np.int64))
        # A copy: whoever takes it in may change it.
        arrays[name] = np.frombuffer(payload, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize
    return head["about"], arrays


def damage(path: Path) -> str | None:
    """What is wrong with a file of deltas, every checksum read; None if nothing is.

    What a crash left of a delta at the end is nothing wrong.
    """
    end, number = len(START), 0
    for delta in read_deltas(path):
        try:
            read_rest(delta)
        except ValueError as error:
            return str(error)
        end, number = delta.end, number + 2
    with suppress(FileNotFoundError), path.open("rb") as opened:
        file = opened.fileno()
        size = os.fstat(file).st_size
        if os.pread(file, len(START), 0) != START[:size]:
            return "it does not begin as deltas do"
        if _rotten(file, end, number, size):
            return f"damaged from byte {end:,} on"
    return None


def _rotten(file: int, at: int, number: int, size: int) -> bool:
    """Whether what lies behind the last delta is more than a delta that was not finished."""
    for kind in (GROWTH, REST):
        end = _end(file, at)
        if end == at or end > size:
            # Too long for the file: cut short, or is it the length that is wrong?
            true = _true_end(file, at)
            return true is not None and true <= size
        try:
            _read(file, (at, end), kind, number)
        except (ValueError, KeyError, TypeError):
            return True
        at, number = end, number + 1
    return False


def _true_end(file: int, at: int) -> int | None:
    """Where the record at a place ends, by its arrays, whatever its length says."""
    start = at + HEAD.size + _LENGTH.size
    try:
        (length,) = _LENGTH.unpack(os.pread(file, _LENGTH.size, start - _LENGTH.size))
        table = json.loads(os.pread(file, min(length, records.LONGEST), start))["arrays"]
        sizes = [int(np.dtype(kind).itemsize * np.prod(shape)) for _, kind, shape in table]
        return int(start + length + sum(sizes))
    except (struct.error, ValueError, KeyError, TypeError):
        return None
