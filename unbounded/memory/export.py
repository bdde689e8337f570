"""A memory as a table: a row a word, in the order they were read, or document by document."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.errors import SettingError, needing
from unbounded.files import write_aside
from unbounded.memory.backend import Rows

ENDINGS = (".parquet", ".csv", ".jsonl")
COLUMNS = ("word", "document", "line", "time")


def write_table(rows: Iterable[Rows], path: Path) -> int:
    """Write words to a Parquet, CSV or JSON lines file, by its ending; how many.

    `-` is JSON lines on standard output. Columns: word, document, line, time. Parquet needs the
    extra `parquet`.
    """
    if str(path) == "-":
        return _json_lines(rows, sys.stdout)
    if path.suffix not in ENDINGS:
        raise SettingError(f"{path} is no table; give a file that ends in {' '.join(ENDINGS)}")
    with write_aside(path) as aside:
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
