"""How far the journal was acknowledged, so that damage can be told from a torn tail.

Behind that mark a bad record can only be what a crash left of words that nobody was promised: it
is cut off. Before it, something was lost that must not be, and that is an error. The mark is
written after the journal is synced and not synced itself: after a power cut it may lag behind,
never run ahead.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import final

from unbounded.store.disk import Disk, write_all

NAME = "acknowledged"

_MARK = struct.Struct("<QQ")
_SUM = struct.Struct("<I")


@final
class Acknowledged:
    """Keeps the mark of a journal that is being written."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._file = disk.open(folder / NAME, os.O_WRONLY | os.O_CREAT)

    def mark(self, generation: int, end: int) -> None:
        """Everything before `end` is on disk."""
        mark = _MARK.pack(generation, end)
        os.lseek(self._file, 0, os.SEEK_SET)
        write_all(self._disk, self._file, mark + _SUM.pack(zlib.crc32(mark)))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def read_mark(folder: Path, generation: int) -> int | None:
    """How far that journal was acknowledged: 0 if the mark is not there or of another journal.

    None is a mark that cannot be read.
    """
    try:
        data = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return 0
    mark, crc = data[: _MARK.size], data[_MARK.size :]
    if len(data) != _MARK.size + _SUM.size or _SUM.unpack(crc)[0] != zlib.crc32(mark):
        return None
    found, end = _MARK.unpack(mark)
    return int(end) if found == generation else 0
