"""Blocks as they are written down: each short enough for a record, with its documents and lines."""

from collections.abc import Iterable, Iterator

import numpy as np

from unbounded.corpus import Block
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
