"""What a log has left, by entry, by document, by name, or all of it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from unbounded.memory.backend import Context, Document, Placed, Rows
from unbounded.memory.forgetting import is_part_of
from unbounded.store import TextLog


def contexts(log: TextLog, entries: Sequence[int], before: int, after: int) -> list[Context]:
    """Where entries stand, with so many words before and after each."""
    catalog = log.catalog
    positions = catalog.positions_of(np.array(entries, np.int64))
    found = []
    for at, place in zip(positions.tolist(), catalog.where(positions), strict=True):
        first, last = max(at - before, 0), at + after + 1
        number = int(catalog.kept(first, at - first).sum())
        words, forms = log.words(first, last), log.forms(first, last)
        found.append(Context(place.document, place.line, place.time, words, number, forms))
    return found


def documents(log: TextLog) -> list[Document]:
    """What was read and is left of it, in the order of its first word."""
    left = log.catalog.words_left().tolist()
    return [
        Document(one.name, words, datetime.fromtimestamp(one.time, UTC))
        for one, words in zip(log.catalog.documents, left, strict=True)
        if words
    ]


def rows(log: TextLog) -> Iterator[Rows]:
    """Every word that is left, in the order they were read."""
    names = [document.name for document in log.catalog.documents]
    for words, left in log.blocks():
        runs = np.repeat(words.runs[:, :2], words.runs[:, 2], axis=0)[left]
        if len(runs):
            every = words.words
            some = [every[i] for i in np.flatnonzero(left)]
            yield some, [names[i] for i in runs[:, 0].tolist()], runs[:, 1], words.time


def words_of(log: TextLog, name: str) -> Iterator[Placed]:
    """What is left of the documents under a name, in the order it was read."""
    names = [one.name if is_part_of(one.name, name) else "" for one in log.catalog.documents]
    lines = log.catalog.lines()
    columns = lines.starts, lines.lengths, lines.documents, lines.lines
    for start, length, document, line in zip(*(c.tolist() for c in columns), strict=True):
        if names[document]:
            for word in log.words(start, start + length):
                yield names[document], line, word
