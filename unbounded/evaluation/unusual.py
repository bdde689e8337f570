"""How unusual a number is among those before it, in constant room."""

from typing import final

import numpy as np

STEP, HIGHEST = 0.01, 50.0
"""Numbers are told apart by so much, up to so much; nats a word are rarely above 20."""


@final
class OnlineQuantile:
    """The part of all numbers so far that were lower, those that were the same counted half.

    >>> seen = OnlineQuantile()
    >>> [seen.add(number) for number in (3.0, 5.0, 4.0, 9.0)]
    [None, 1.0, 0.5, 1.0]
    """

    def __init__(self) -> None:
        self._counts = np.zeros(int(HIGHEST / STEP) + 1, np.int64)
        self._total = 0

    def add(self, number: float) -> float | None:
        """Where the number stands among those before it; None for the first."""
        place = int(min(max(number, 0.0), HIGHEST) / STEP)
        lower = float(self._counts[:place].sum() + self._counts[place] / 2)
        found = lower / self._total if self._total else None
        self._counts[place] += 1
        self._total += 1
        return found
