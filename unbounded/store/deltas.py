"""Deltas from a snapshot on: what was added since, and all that is small; a fraction of a snapshot.

    steps-GENERATION-RECORDS.log    begins at the snapshot after so many records of the journal
      record    as in the journal (`records.py`), two a delta
      added     JSON (where it stands, which arrays), then the arrays; added to what was before
      replaced  the same; in the place of what was before, so only the last one is read

A delta that is not whole ends the file: what it held is read again from the journal.
"""

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.store import records
from unbounded.store.disk import Disk, synced, told, write_all
from unbounded.store.journal import scan
from unbounded.store.records import HEAD, record_at, to_bytes
from unbounded.store.snapshot import ROOM, Snapshot

START = b"unbounded steps 1\n"

ADDED, REPLACED = 16, 17

Arrays = dict[str, np.ndarray]

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Delta:
    """Where a delta leads from and to, and where it lies in its file."""

    before: int
    """How many records the state had seen before it."""
    to: Snapshot
    """Where it leads; the path is that of the file it lies in."""
    number: int
    """The first of its two records."""
    added: tuple[int, int]
    replaced: tuple[int, int]

    @property
    def end(self) -> int:
        """Where the next delta begins."""
        return self.replaced[1]


@dataclass(frozen=True)
class Tail:
    """Where the next delta goes: behind so many bytes and records of a file."""

    state: Snapshot
    """What it leads on from; the path is that of the file."""
    end: int = 0
    number: int = 0

    @staticmethod
    def behind(delta: Delta) -> "Tail":
        """The next delta leads on from this one."""
        return Tail(delta.to, delta.end, delta.number + 2)

    def append(
        self, disk: Disk, to: Snapshot, added: Mapping[str, np.ndarray], replaced: Arrays
    ) -> "Tail":
        """Write a delta, which is on disk when it returns; where the next one goes."""
        path = self.state.path
        about = {"before": self.state.records, **asdict(to), "path": path.name}
        data = b"" if self.end else START
        data += to_bytes(ADDED, self.number, _packed(about, added))
        data += to_bytes(REPLACED, self.number + 1, _packed({}, replaced))
        with (
            told(f"{path} could not be written", ROOM),
            synced(disk, path, os.O_RDWR | os.O_CREAT) as file,
        ):
            # What a crash left of another one goes.
            os.ftruncate(file, self.end)
            os.lseek(file, self.end, os.SEEK_SET)
            write_all(disk, file, data)
        return Tail(replace(to, path=path), self.end + len(data), self.number + 2)


def read_deltas(path: Path) -> Iterator[Delta]:
    """The deltas of a file up to the first that is not whole; arrays are not looked at."""
    with suppress(FileNotFoundError), path.open("rb") as opened:
        file = opened.fileno()
        if os.pread(file, len(START), 0) != START:
            return
        size, at, number = os.fstat(file).st_size, len(START), 0
        while True:
            added = (at, _end(file, at))
            replaced = (added[1], _end(file, added[1]))
            if not at < added[1] < replaced[1] <= size:
                return
            try:
                about, _ = _read(file, added, ADDED, number)
                before = int(about.pop("before"))
                to = Snapshot(**{**about, "path": path})
            except (ValueError, KeyError, TypeError):
                return
            yield Delta(before, to, number, added, replaced)
            at, number = replaced[1], number + 2


def read_added(delta: Delta) -> Arrays:
    """What is added to the state before it; `ValueError` if it is damaged."""
    return _arrays(delta, delta.added, ADDED, delta.number)


def read_replaced(delta: Delta) -> Arrays:
    """What is in the place of the same before it; `ValueError` if it is damaged."""
    return _arrays(delta, delta.replaced, REPLACED, delta.number + 1)


def _arrays(delta: Delta, place: tuple[int, int], kind: int, number: int) -> Arrays:
    with delta.to.path.open("rb") as opened:
        try:
            return _read(opened.fileno(), place, kind, number)[1]
        except (KeyError, TypeError) as error:
            raise ValueError(str(error)) from None


def _end(file: int, at: int) -> int:
    """Where the record at a place says that it ends; the place itself if there is none."""
    head = os.pread(file, HEAD.size, at)
    if len(head) < HEAD.size or (length := HEAD.unpack(head)[0]) > records.LONGEST:
        return at
    return at + HEAD.size + int(length)


def _read(
    file: int, place: tuple[int, int], kind: int, number: int
) -> tuple[dict[str, Any], Arrays]:
    data = memoryview(os.pread(file, place[1] - place[0], place[0]))
    found = record_at(data, 0, number)
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
    with suppress(FileNotFoundError), path.open("rb") as opened:
        file, end = opened.fileno(), len(START)
        size = os.fstat(file).st_size
        if os.pread(file, len(START), 0) != START[:size]:
            return "it does not begin as deltas do"
        for record in scan(file, end, 0):
            end = record.end
        said, true = _end(file, end), _true_end(file, end)
        # Whole by its length, or by its arrays if it is the length that is wrong; yet not so.
        if end < said <= size or (true is not None and true <= size):
            return f"damaged from byte {end:,} on"
    return None


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
