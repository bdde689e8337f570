"""What a memory tells of what it has: documents, words with their places, what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

Show = Callable[[int, int], None]
"""Told how many words were read again, and of how many."""

Rows = tuple[Sequence[str], Sequence[str], np.ndarray, float]
"""Words, the document and line of each, and when they were read."""


Placed = tuple[str, int, str]
"""A word, behind its document and line."""


def unheard(done: int, total: int) -> None:
    """A `Show` for whom nobody wants to tell."""


@dataclass(frozen=True)
class Document:
    """A document that was read: how many of its words are left, and when it was read."""

    name: str
    words: int
    time: datetime


@dataclass(frozen=True)
class Context:
    """Where an entry stands, when it was read, and the words around it."""

    document: str
    line: int
    time: float
    words: Sequence[str]
    number: int
    """Which of the words it is."""
    forms: Sequence[str] | None = None
    """The words as they were written, if that is known."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong: where, what, and what to do."""

    where: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.advice}"
