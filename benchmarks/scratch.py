"""States and their words in files: what was read so far, without keeping it in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import final

import numpy as np

from unbounded.types import Hidden, Ids

CHUNK = 65_536


@final
class Scratch:
    """Keys as 16-bit floats and their words, appended as they are read, and read back by range.

    Plain writes and reads, not a memory map: mapped pages would count as the memory of the one
    who is measured. Whoever opens the folder again reads what was written by then.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self._keys, self._words, self._width = folder / "keys", folder / "words", width

    def append(self, keys: Hidden, words: Ids) -> None:
        """Add pairs to the files."""
        for path, rows in ((self._keys, keys.astype("f2")), (self._words, words.astype("i4"))):
            with path.open("ab") as file:
                file.write(rows.tobytes())

    def keys(self, start: int, stop: int) -> Hidden:
        """The keys from `start` to before `stop`."""
        width = self._width
        rows = np.fromfile(self._keys, np.float16, (stop - start) * width, offset=start * width * 2)
        return rows.reshape(-1, width).astype(np.float32)

    def words(self, stop: int) -> Ids:
        """The first `stop` words."""
        return np.fromfile(self._words, np.int32, stop)

    def chunks(self, start: int, stop: int) -> Iterator[Hidden]:
        """The keys from `start` to before `stop`, some at a time."""
        for begin in range(start, stop, CHUNK):
            yield self.keys(begin, min(begin + CHUNK, stop))
