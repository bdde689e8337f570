"""A log: its blocks as they are written down; what is left of it.

That can be had document by document, file by file, or as a table with a row a word.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.corpus import Block
from unbounded.errors import SettingError, needing
from unbounded.files import write_atomically
from unbounded.memory.forgetting import is_part_of
from unbounded.store import Snapshot, TextLog
from unbounded.store.catalog import FileNote
from unbounded.store.records import Runs

LARGE, MOST = 131_072, 8

ENDINGS = (".parquet", ".csv", ".jsonl")
COLUMNS = ("word", "document", "line", "time")

Rows = tuple[Sequence[str], Sequence[str], np.ndarray, float]
"""Words, the document and line of each, and when they were read."""


Placed = tuple[str, int, str]
"""A word, behind its document and line."""


@dataclass(frozen=True)
class Document:
    """A document that was read: how many of its words are left, and when it was read."""

    name: str
    words: int
    time: datetime


def enlarged(block: int, entries: int) -> int:
    """Words to read at once: up to eight blocks in a large memory, whose lists are then shared.

    >>> [enlarged(512, entries) for entries in (0, 200_000, 400_000, 10_000_000)]
    [512, 512, 1536, 4096]
    """
    return block * min(max(entries // LARGE, 1), MOST)


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


def documents(log: TextLog) -> list[Document]:
    """What was read and is left of it, in the order of its first word."""
    left = log.catalog.words_left().tolist()
    return [
        Document(one.name, words, datetime.fromtimestamp(one.time, UTC))
        for one, words in zip(log.catalog.documents, left, strict=True)
        if words
    ]


def files(log: TextLog, *, whole: bool) -> Mapping[str, FileNote]:
    """Files of which something is left; those that are not whole, unless all are, by no checksum.

    All are where what was forgotten was to keep a budget.
    """
    noted, parts = log.catalog.files, dict[str, int]()
    for one in documents(log):
        bare = re.sub(r"#\d+$", "", one.name)
        for owner in {bare, one.name} & noted.keys():
            parts[owner] = parts.get(owner, 0) + one.words
    return {
        name: note if whole or parts[name] == note.words else replace(note, checksum="")
        for name, note in noted.items()
        if parts.get(name)
    }


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


# A row a word.


def write_table(rows: Iterable[Rows], path: Path) -> int:
    """Write words to a Parquet, CSV or JSON lines file, by its ending; how many.

    `-` is JSON lines on standard output. Columns: word, document, line, time. Parquet needs the
    extra `parquet`.
    """
    if str(path) == "-":
        return _json_lines(rows, sys.stdout)
    if path.suffix not in ENDINGS:
        raise SettingError(f"{path} is no table; give a file that ends in {' '.join(ENDINGS)}")
    with write_atomically(path) as aside:
        if path.suffix == ".parquet":
            return _parquet(rows, aside)
        with aside.open("w", encoding="utf-8", newline="") as file:
            return _csv(rows, file) if path.suffix == ".csv" else _json_lines(rows, file)


def _each(rows: Iterable[Rows]) -> Iterator[tuple[str, str, int, str]]:
    for words, documents, lines, time in rows:
        when = datetime.fromtimestamp(time, UTC).isoformat()
        for word, document, line in zip(words, documents, lines.tolist(), strict=True):
            yield word, document, line, when


def _csv(rows: Iterable[Rows], file: Any) -> int:
    table = csv.writer(file)
    table.writerow(COLUMNS)
    return sum(1 for row in _each(rows) if table.writerow(row))


def _json_lines(rows: Iterable[Rows], file: Any) -> int:
    count = 0
    for row in _each(rows):
        named = dict(zip(COLUMNS, row, strict=True))
        file.write(json.dumps(named, ensure_ascii=False) + "\n")
        count += 1
    return count


def _parquet(rows: Iterable[Rows], path: Path) -> int:
    with needing("pyarrow, which writes Parquet,", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    kinds: list[Any] = [pa.string(), pa.string(), pa.int32(), pa.timestamp("us", tz="UTC")]
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    count = 0
    with parquet.ParquetWriter(path, schema) as file:
        for words, documents, lines, time in rows:
            when = np.full(len(words), round(time * 1e6), "datetime64[us]")
            columns = {"word": words, "document": documents, "line": lines, "time": when}
            file.write_table(pa.table(columns, schema=schema))
            count += len(words)
    return count
