"""Where a memory's words, documents and pairs lie: what a memory asks of such a place."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from unbounded.corpus import Block
from unbounded.memory.forgetting import Choice
from unbounded.model import OnlineModel, Reading
from unbounded.store.catalog import FileNote

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


class Backend(ABC):
    """In this process, on disk, or on shards: reads into an online model, and keeps what it read.

    Entries are numbered as the datastore of the expert `unbounded` numbers them.
    """

    events: list[str]
    """What happened that somebody should hear of."""

    appends: bool
    """Whether a document can go on after others were read."""

    @property
    @abstractmethod
    def online(self) -> OnlineModel:
        """The model that has read everything, for asking."""

    @property
    @abstractmethod
    def version(self) -> object:
        """Equal to the one before as long as nothing was learned or forgotten."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many words there are."""

    @property
    @abstractmethod
    def block(self) -> int:
        """How many words to read at once."""

    @property
    @abstractmethod
    def cited(self) -> Sequence[str]:
        """The experts whose pairs are entries."""

    @property
    @abstractmethod
    def known(self) -> int:
        """Words that were read before and were therefore passed over."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Words that wait for shards that are unavailable."""

    @abstractmethod
    def check_usable(self, *, write: bool = False) -> None:
        """Refuse to be asked, or written, if it was closed, interrupted, or opened for reading."""

    @abstractmethod
    def unnamed(self) -> str:
        """What to call a text that nobody gave a name."""

    @abstractmethod
    def read(
        self, cut: Iterable[Block], time: datetime | None, *, whole: bool
    ) -> Iterator[Reading]:
        """Read blocks, one after another; all as durable as it gets at the end.

        If it fails, what was kept is said in `events`; with `whole`, nothing is kept if possible.
        """

    @abstractmethod
    def contexts(self, entries: Sequence[int], before: int, after: int) -> list[Context]:
        """Where entries stand, with so many words before and after each."""

    @abstractmethod
    def documents(self) -> list[Document]:
        """What was read and is left of it."""

    @abstractmethod
    def rows(self) -> Iterator[Rows]:
        """Every word that is left, some at a time."""

    @abstractmethod
    def forget(self, choice: Choice, *, dry_run: bool, show: Show) -> int:
        """Be as if some words had never been read; how many. Durable when it returns."""

    @abstractmethod
    def verb(self, name: str) -> AbstractContextManager[None]:
        """What is done within is one read or forget, to be taken back together."""

    @abstractmethod
    def undo(self, show: Show) -> tuple[str, int]:
        """Be as before the last read or forget; which it was, and how many words more there are."""

    @abstractmethod
    def words_of(self, name: str) -> Iterable[Placed]:
        """What is left of the documents under a name, in the order it was read."""

    @abstractmethod
    def files(self) -> Mapping[str, FileNote]:
        """Files that were read to their end and of which something is left.

        One that is not whole any more has no checksum.
        """

    @abstractmethod
    def note_file(self, name: str, note: FileNote) -> None:
        """A file was just read to its end."""

    @abstractmethod
    def compact(self) -> tuple[int, int]:
        """Write everything anew without what was forgotten; bytes on disk before and after."""

    @abstractmethod
    def view(self) -> "Backend":
        """One for asking that stays as this is now, while this forgets and compacts; close it.

        It shares what this knows, and must not be asked any more once this reads on.
        """

    @abstractmethod
    def refresh(self, show: Show) -> int | None:
        """Follow the writer: how many words came; None if what was there has changed."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Entries, words, documents, bytes, in all and by part."""

    @abstractmethod
    def check(self, *, deep: bool, show: Show) -> list[Finding]:
        """What is wrong, and what to do; nothing if all is well."""

    @abstractmethod
    def close(self) -> None:
        """Let go; what was acknowledged stays."""
