"""Room for an array to grow where it lies: to move a large one takes seconds."""

import math
import mmap
from contextlib import suppress
from typing import Any, final

import numpy as np

# Addresses, not memory: pages are there once something is written on them.
_RESERVED = 1 << 34

# Told to the system and not in this Python's names: do not set memory aside for all of it.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)

# From here on large pages: lists lie scattered, and each chunk would need a page looked up.
_LARGE = 1 << 22

# Where nothing can be reserved, one row in so many is kept free.
_SPARE = 32


class _Pages(mmap.mmap):
    """Pages of nobody's file, with nothing but zeros behind what was written."""


@final
class GrowableArray:
    """The rows of an array, and room behind them; an array that is `roomy` stays where it lies.

    >>> room = GrowableArray(np.arange(3))
    >>> room.first(5).tolist()
    [0, 1, 2, 0, 0]
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._pages: mmap.mmap | None = None
        self._used = len(rows)
        self._row = rows.itemsize * math.prod(rows.shape[1:])
        whole = _whole(rows)
        self._rows = rows if whole is None else whole
        if whole is None:
            self._move(len(rows))

    def first(self, count: int) -> np.ndarray:
        """The first so many rows, those that are new all zeros; where they lie the others do."""
        if count > len(self._rows):
            self._move(count)
        self._used = max(self._used, count)
        self._enlarge_pages()
        return self._rows[:count]

    def _move(self, count: int) -> None:
        old, shape, kind = self._rows[: self._used], self._rows.shape[1:], self._rows.dtype
        size = max(_RESERVED, 16 * count * self._row)
        try:
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self._pages = _Pages(-1, size, flags=private | _NORESERVE)
            self._rows = _rows_on(self._pages, shape, kind)
            self._enlarge_pages()
        except OSError:
            self._rows = np.zeros((count + count // _SPARE, *shape), kind)
        self._rows[: len(old)] = old

    def _enlarge_pages(self) -> None:
        """Before the first of them is written on, or while they are few."""
        if self._pages is not None and self._used * self._row >= _LARGE:
            # A wish: a system without large pages, or without room for them, refuses it.
            with suppress(OSError, AttributeError):
                self._pages.madvise(mmap.MADV_HUGEPAGE)
            self._pages = None


def roomy(shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    """An array of zeros which a `GrowableArray` need not move.

    >>> array = roomy((3, 2), np.dtype("f4"))
    >>> GrowableArray(array).first(4).ctypes.data == array.ctypes.data
    True
    """
    return GrowableArray(np.empty((0, *shape[1:]), kind)).first(shape[0])


def _rows_on(pages: mmap.mmap, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    """All rows for which there is room."""
    row = kind.itemsize * math.prod(shape)
    fits = len(pages) // row
    return np.frombuffer(pages, np.uint8, fits * row).view(kind).reshape(fits, *shape)


def _whole(rows: np.ndarray) -> np.ndarray | None:
    """The rows with the room behind them, if they are the first rows of a room's pages."""
    pages: Any = getattr(rows.base, "base", None)
    if isinstance(pages, memoryview):
        pages = pages.obj
    if not isinstance(pages, _Pages) or not rows.flags.c_contiguous:
        return None
    whole = _rows_on(pages, rows.shape[1:], rows.dtype)
    return whole if whole.ctypes.data == rows.ctypes.data else None
