"""Room for an array to grow where it lies: to move a large one takes seconds."""

import math
import mmap
from typing import final

import numpy as np

# Addresses, not memory: pages are there once something is written on them.
_RESERVED = 1 << 34

# Told to the system and not in this Python's names: do not set memory aside for all of it.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)

# From here on large pages: lists lie scattered, and each chunk would need a page looked up.
_LARGE = 1 << 22

# Where nothing can be reserved, one row in so many is kept free.
_SPARE = 32


@final
class Room:
    """The rows of an array, and room behind them.

    >>> room = Room(np.arange(3))
    >>> room.first(5).tolist()
    [0, 1, 2, 0, 0]
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._pages: mmap.mmap | None = None
        self._rows = rows
        self._used = len(rows)
        self._row = rows.itemsize * math.prod(rows.shape[1:])
        self._move(len(rows))

    def first(self, count: int) -> np.ndarray:
        """The first so many rows, those that are new all zeros; where they lie the others do."""
        if count > len(self._rows):
            self._move(count)
        self._used = max(self._used, count)
        if self._pages is not None and self._used * self._row >= _LARGE:
            self._pages.madvise(mmap.MADV_HUGEPAGE)
            self._pages = None
        return self._rows[:count]

    def _move(self, count: int) -> None:
        old, shape, kind = self._rows[: self._used], self._rows.shape[1:], self._rows.dtype
        size = max(_RESERVED, 16 * count * self._row)
        try:
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self._pages = mmap.mmap(-1, size, flags=private | _NORESERVE)
            fits = size // self._row
            self._rows = np.frombuffer(self._pages, np.uint8, fits * self._row).view(kind)
            self._rows = self._rows.reshape(fits, *shape)
        except OSError:
            self._rows = np.zeros((count + count // _SPARE, *shape), kind)
        self._rows[: len(old)] = old
