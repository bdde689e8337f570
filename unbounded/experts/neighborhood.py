"""How many neighbors to ask: the paper's 1,024, and more in a memory of half a million and more."""

import sys
from dataclasses import dataclass

from unbounded.errors import SettingError

PAPER_K = 1024
""" "Unless said otherwise, we query the 1,024 nearest neighbors." """

LARGE = 2**19
"""Entries from which on that is too few: their words are ever fewer of those that were read."""


@dataclass(frozen=True)
class Neighborhood:
    """`k` neighbors, and an eighth as many more from `large` entries on and with each doubling.

    >>> [Neighborhood().at(entries) for entries in (10**3, 10**6, 5 * 10**6, 10**7, 10**8)]
    [1024, 1152, 1536, 1664, 2048]
    >>> Neighborhood.of(32).at(10**9)
    32
    """

    k: int = PAPER_K
    large: int | None = LARGE

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError(f"k is {self.k}; at least 1 neighbor is needed")

    @staticmethod
    def of(k: int | None) -> "Neighborhood":
        """Always k, or as many as seem best."""
        return Neighborhood() if k is None else Neighborhood(k, large=None)

    def at(self, entries: int) -> int:
        """How many neighbors are asked of so many entries."""
        return self.k + self._steps(entries) * (self.k // 8)

    def until_more(self, entries: int) -> int:
        """How many entries may come until more neighbors are asked."""
        if self.large is None:
            return sys.maxsize
        return (self.large << self._steps(entries)) - entries

    def _steps(self, entries: int) -> int:
        return 0 if self.large is None else (entries // self.large).bit_length()
