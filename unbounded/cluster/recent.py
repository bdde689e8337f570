"""What a reader has read and not yet handed to the shards: searched exactly, where it is."""

import time
from typing import final

import numpy as np

from unbounded.cluster.messages import Piece
from unbounded.corpus import Vocabulary
from unbounded.datastore import Flat
from unbounded.growable_array import GrowableArray
from unbounded.types import Hidden, Ids


@final
class Recent:
    """Pairs in the order they were read, and where in which document each stands."""

    def __init__(self, width: int, document: str) -> None:
        self._width = width
        self._empty()
        self.begin(document, 0)

    def _empty(self) -> None:
        self.index = Flat(self._width)
        self._lines = GrowableArray(np.empty(0, np.int64))
        # Document, position and place here of the first word of each stretch.
        self._stretches: list[tuple[str, int, int]] = []

    def __len__(self) -> int:
        return len(self.index)

    @property
    def words(self) -> Ids:
        """The words, by the reader's numbers."""
        return self.index.words

    def begin(self, document: str, position: int) -> None:
        """What comes next stands in this document, from this position on."""
        self.document, self.position = document, position
        self._stretches.append((document, position, len(self)))

    def add(self, keys: Hidden, words: Ids, lines: Ids) -> None:
        """Append pairs; refused ones leave everything as it was."""
        self.index.add(keys, words)
        self._lines.append(lines)
        self.position += len(words)

    def place_of(self, at: int) -> tuple[str, int, int]:
        """Document, position and line of a pair."""
        document, position, first = [s for s in self._stretches if s[2] <= at][-1]
        return document, position + at - first, int(self._lines.view[at])

    def taken(self, shards: int, vocabulary: Vocabulary) -> list[list[Piece]]:
        """All of it cut up for so many shards, and nothing is left here.

        The word at position p of a document goes to shard p modulo their number: so neighbors,
        which are often close together in one text, are spread evenly.
        """
        out: list[list[Piece]] = [[] for _ in range(shards)]
        when, words = time.time(), vocabulary.decode(self.words)
        ends = [first for _, _, first in self._stretches[1:]] + [len(self)]
        for (document, position, first), end in zip(self._stretches, ends, strict=True):
            for shard in range(shards):
                skipped = (shard - position) % shards
                mine = slice(first + skipped, end, shards)
                keys = self.index.keys[mine].copy()
                if len(keys):
                    lines = self._lines.view[mine].copy()
                    piece = (document, position + skipped, shards, when, lines, words[mine], keys)
                    out[shard].append(Piece(*piece))
        self._empty()
        self.begin(self.document, self.position)
        return out
