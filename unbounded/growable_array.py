"""Arrays that grow at the end: large ones where they lie, for to move them takes seconds."""

import math
import mmap
import sys
from contextlib import suppress
from typing import Any, final

import numpy as np

# Addresses, not memory: pages are there once something is written on them.
_RESERVED = 1 << 34

# Do not set memory aside for all of it. Python has a name for it since 3.13; before, Linux's number
# is known, and elsewhere it may mean something else.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

# From here on large pages: lists lie scattered, and each chunk would need a page looked up.
_LARGE = 1 << 22


class _Pages(mmap.mmap):
    """Pages of nobody's file, with nothing but zeros behind what was written."""


@final
class GrowableArray:
    """Rows that are appended in amortized constant time, and may be dropped at the front.

    What is kept is one contiguous view. With `reserve`, addresses are set aside for it to grow
    where it lies, and an array that is `reserved` is not even moved there; otherwise, or where the
    system has none, one row in `spare` is kept free.

    >>> rows = GrowableArray(np.empty(0, np.int32))
    >>> rows.append(np.array([1, 2, 3], np.int32))
    >>> rows.keep_last(2)
    >>> rows.view.tolist(), len(rows)
    ([2, 3], 2)
    >>> GrowableArray(np.arange(3), reserve=True).resized(5).tolist()
    [0, 1, 2, 0, 0]
    """

    def __init__(self, rows: np.ndarray, *, spare: int = 2, reserve: bool = False) -> None:
        self._spare, self._reserve = spare, reserve
        # Until they have been asked to be large.
        self._pages: mmap.mmap | None = None
        self._start, self._stop = 0, len(rows)
        whole = _whole(rows) if reserve else None
        self._rows = rows if whole is None else whole
        if whole is None:
            self._move(len(rows))

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def view(self) -> np.ndarray:
        """The rows that are kept; valid until the next append."""
        return self._rows[self._start : self._stop]

    @property
    def bytes(self) -> int:
        """All that is allocated, the room for growth included."""
        return self._rows.nbytes

    def append(self, rows: np.ndarray) -> None:
        """Add rows at the end."""
        count = len(self)
        self.resized(count + len(rows))[count:] = rows

    def resized(self, count: int) -> np.ndarray:
        """The first so many rows; new ones are zeros, if none was ever dropped."""
        if self._start + count > len(self._rows):
            self._move(count)
        self._stop = self._start + count
        self._enlarge_pages(count)
        return self.view

    def keep_last(self, count: int) -> None:
        """Drop all but the last `count` rows."""
        self._start = max(self._start, self._stop - count)

    def drop_last(self, count: int) -> None:
        """Take back the last `count` rows."""
        self._stop -= count

    def _move(self, count: int) -> None:
        old = self.view
        # Where dropping left enough room rows only move down, so a window of n rows stays at 1.5 n
        # and moves once every n / 2 rows, unless told otherwise.
        if self._start == 0 or count + count // self._spare > len(self._rows):
            self._rows = self._room_for(count)
        self._rows[: len(old)] = old
        self._start, self._stop = 0, len(old)

    def _room_for(self, count: int) -> np.ndarray:
        shape, kind = self._rows.shape[1:], self._rows.dtype
        size = max(_RESERVED, 16 * count * kind.itemsize * math.prod(shape))
        if self._reserve:
            with suppress(OSError):
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
                pages = self._pages = _Pages(-1, size, flags=flags)
                # Before the first of them is written on.
                self._enlarge_pages(count)
                return _rows_on(pages, shape, kind)
        return np.zeros((count + count // self._spare, *shape), kind)

    def _enlarge_pages(self, count: int) -> None:
        row = self._rows.itemsize * math.prod(self._rows.shape[1:])
        if self._pages is not None and count * row >= _LARGE:
            # A wish: a system without large pages, or without room for them, refuses it.
            with suppress(OSError, AttributeError):
                self._pages.madvise(mmap.MADV_HUGEPAGE)
            self._pages = None


def reserved(shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    """An array of zeros which a `GrowableArray` that reserves need not move.

    >>> array = reserved((3, 2), np.dtype("f4"))
    >>> GrowableArray(array, reserve=True).resized(4).ctypes.data == array.ctypes.data
    True
    """
    return GrowableArray(np.empty((0, *shape[1:]), kind), reserve=True).resized(shape[0])


def _rows_on(pages: mmap.mmap, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    """All rows for which there is room."""
    row = kind.itemsize * math.prod(shape)
    fits = len(pages) // row
    return np.frombuffer(pages, np.uint8, fits * row).view(kind).reshape(fits, *shape)


def _whole(rows: np.ndarray) -> np.ndarray | None:
    """The rows with the room behind them, if they are the first rows of reserved pages."""
    pages: Any = getattr(rows.base, "base", None)
    if isinstance(pages, memoryview):
        pages = pages.obj
    if not isinstance(pages, _Pages) or not rows.flags.c_contiguous:
        return None
    whole = _rows_on(pages, rows.shape[1:], rows.dtype)
    return whole if whole.ctypes.data == rows.ctypes.data else None
