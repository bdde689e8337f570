"""A log: its blocks as they are written down, each short enough for a record, and what is left."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from unbounded.corpus import Block
from unbounded.memory.backend import Context, Document, Placed, Rows
from unbounded.memory.forgetting import is_part_of
from unbounded.store import Snapshot, TextLog
from unbounded.store.records import Runs, fitting

LARGE, MOST = 131_072, 8


def enlarged(block: int, entries: int) -> int:
    """Words to read at once: up to eight blocks in a large memory, whose lists are then shared.

    >>> [enlarged(512, entries) for entries in (0, 200_000, 400_000, 10_000_000)]
    [512, 512, 1536, 4096]
    """
    return block * min(max(entries // LARGE, 1), MOST)


def fitting_blocks(cut: Iterable[Block]) -> Iterator[Block]:
    """The blocks, those that are too long for a record in parts."""
    for block in cut:
        for rows in fitting(block.words):
            if rows == slice(0, len(block.words)):
                yield block
                continue
            used, document = np.unique(block.document[rows], return_inverse=True)
            names = tuple(block.documents[i] for i in used.tolist())
            forms = None if block.forms is None else block.forms[rows]
            yield Block(block.words[rows], names, document, block.line[rows], forms)


def labels(block: Block) -> list[str]:
    """Names of documents as they can be written down, whatever bytes a file's name had."""
    return [name.encode("utf-8", "replace").decode() for name in block.documents]


def runs_of(block: Block) -> Runs:
    """Where documents and lines change within a block."""
    new = np.ones(len(block.words), bool)
    new[1:] = (np.diff(block.document) != 0) | (np.diff(block.line) != 0)
    starts = np.flatnonzero(new)
    lengths = np.diff(np.append(starts, len(new)))
    return np.stack([block.document[starts], block.line[starts], lengths], axis=1)


def kept_since(store: TextLog, began: Snapshot) -> str:
    """How far reading came before it failed; by a budget, positions may have changed meanwhile."""
    (last,) = store.catalog.where(np.array([store.catalog.positions - 1]))
    words = store.catalog.positions - began.positions
    some = f"{words:,} words" if store.generation == began.generation else "words"
    where = f"up to line {last.line} of {last.document!r}"
    return f"{some} were read before it failed and are kept, {where}"


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
