"""Rows that grow at the end and may be forgotten at the front, always contiguous."""

from typing import final

import numpy as np


@final
class GrowableRows:
    """An array appended to in amortized constant time; what is kept is one contiguous view.

    >>> rows = GrowableRows(np.empty(0, np.int32))
    >>> rows.append(np.array([1, 2, 3], np.int32))
    >>> rows.keep_last(2)
    >>> rows.view.tolist(), len(rows)
    ([2, 3], 2)
    """

    def __init__(self, empty: np.ndarray, spare: int = 2) -> None:
        """Start with no rows, of the trailing shape and the type of `empty`.

        Room for one row in `spare` is kept free when they have to be moved.
        """
        self._room = empty[:0].copy()
        self._spare = spare
        self._start = 0
        self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def view(self) -> np.ndarray:
        """The rows that are kept; valid until the next append."""
        return self._room[self._start : self._stop]

    @property
    def bytes(self) -> int:
        """All that is allocated, the room for growth included."""
        return self._room.nbytes

    def append(self, rows: np.ndarray) -> None:
        """Add rows at the end."""
        if self._stop + len(rows) > len(self._room):
            kept = self.view
            needed = len(kept) + len(rows)
            # Where forgetting left enough room this only moves the rows down, so a window of n
            # rows settles at 1.5 n and moves once every n / 2 rows, unless told otherwise.
            size = max(len(self._room), needed + needed // self._spare)
            grown = size > len(self._room)
            room = (
                np.empty((size, *self._room.shape[1:]), self._room.dtype) if grown else self._room
            )
            room[: len(kept)] = kept
            self._room, self._start, self._stop = room, 0, len(kept)
        self._room[self._stop : self._stop + len(rows)] = rows
        self._stop += len(rows)

    def keep_last(self, count: int) -> None:
        """Forget all but the last `count` rows."""
        self._start = max(self._start, self._stop - count)

    def drop_last(self, count: int) -> None:
        """Take back the last `count` rows."""
        self._stop -= count

    def restore(self, rows: np.ndarray) -> None:
        """Hold these rows and nothing else."""
        self._room = np.array(rows, self._room.dtype)
        self._start, self._stop = 0, len(rows)
