"""How far the journal was acknowledged, so that damage can be told from a torn tail.

Behind that mark a bad record can only be what a crash left of words that nobody was promised: it
is cut off. Before it, something was lost that must not be, and that is an error. So is a journal
whose running checksum at the mark is another: the two are of different histories. The mark is
written after the journal is synced and not synced itself: after a power cut it may lag behind,
never run ahead.
"""

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import final

from unbounded.store.disk import Disk, write_all

NAME = "acknowledged"

_MARK = struct.Struct("<QQQI")
_OLD = struct.Struct("<QQ")
_SUM = struct.Struct("<I")


@dataclass(frozen=True)
class Mark:
    """So many records of that journal are on disk, up to `end`, with that running checksum."""

    generation: int
    records: int
    end: int
    checksum: int | None
    """None in a mark of format 1, which does not say how many records there are either."""


@final
class Watermark:
    """Keeps the mark of a journal that is being written."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._file = disk.open(folder / NAME, os.O_WRONLY | os.O_CREAT)

    def mark(self, mark: Mark) -> None:
        """All that it speaks of is on disk."""
        data = _MARK.pack(mark.generation, mark.records, mark.end, mark.checksum)
        os.lseek(self._file, 0, os.SEEK_SET)
        write_all(self._disk, self._file, data + _SUM.pack(zlib.crc32(data)))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def read_mark(folder: Path) -> Mark | None:
    """The mark, if there is one; `ValueError` if it is damaged."""
    try:
        data = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    mark, crc = data[: -_SUM.size], data[-_SUM.size :]
    if len(mark) not in (_MARK.size, _OLD.size) or _SUM.unpack(crc)[0] != zlib.crc32(mark):
        raise ValueError("its checksum is wrong")
    if len(mark) == _OLD.size:
        generation, end = _OLD.unpack(mark)
        return Mark(generation, 0, end, None)
    return Mark(*_MARK.unpack(mark))
