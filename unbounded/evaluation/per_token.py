"""Word by word: what each expert and each row gave every word, as JSON lines or Parquet."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.errors import needing
from unbounded.evaluation.metrics import FIRST_NEW_BAND, surprise
from unbounded.evaluation.rows import ScoredBlock, Watcher
from unbounded.files import write_atomically
from unbounded.types import Probs


@contextmanager
def per_token_writer(path: Path) -> Iterator[Watcher]:
    """Write a line or a Parquet row a word (by the file's suffix); complete only when closed.

    `-` is lines on standard output.

    Columns: `word`, `new` (not a word of the network), `expert.NAME` and `row.NAME` in nats, and
    `weight.ROW.EXPERT`. A word that an expert holds for impossible has no nats there (null).
    """
    if str(path) == "-":
        yield partial(_write_json_lines, sys.stdout)
        return
    opened = _parquet if path.suffix.lower() == ".parquet" else _json_lines
    with write_atomically(path) as aside, opened(aside) as watcher:
        yield watcher


def _numbers(block: ScoredBlock) -> dict[str, Probs]:
    """The columns of numbers; not a number where there is none."""
    reading = block.reading
    columns = {
        f"expert.{name}": _nats(reading.table[:, i]) for i, name in enumerate(reading.experts)
    }
    for name, probs in block.probs.items():
        columns[f"row.{name}"] = _nats(probs)
        for i, expert in enumerate(block.row_experts[name]):
            columns[f"weight.{name}.{expert}"] = block.weights[name][:, i].round(6)
    return columns


def _nats(probs: Probs) -> Probs:
    nats = surprise(probs)
    # Adding zero turns the -0.0 of a certain word into 0.0.
    return np.where(np.isfinite(nats), nats, np.nan).round(6) + 0.0


@contextmanager
def _json_lines(path: Path) -> Iterator[Watcher]:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield partial(_write_json_lines, file)


def _write_json_lines(file: Any, block: ScoredBlock) -> None:
    columns = {
        "word": [json.dumps(word, ensure_ascii=False) for word in block.reading.words],
        "new": _texts((block.bands >= FIRST_NEW_BAND).tolist()),
    }
    columns |= {name: _texts(values.tolist()) for name, values in _numbers(block).items()}
    line = "{" + ", ".join(f'"{name}": %s' for name in columns) + "}\n"
    file.writelines(line % values for values in zip(*columns.values(), strict=True))


def _texts(values: list[Any]) -> list[str]:
    """Each number or truth as JSON; a column at once is faster than word by word."""
    return json.dumps(values)[1:-1].replace("NaN", "null").split(", ") if values else []


@contextmanager
def _parquet(path: Path) -> Iterator[Watcher]:
    with needing("pyarrow, which writes Parquet,", "parquet"):
        import pyarrow
        import pyarrow.parquet
    writers: list[Any] = []

    def write_columns(columns: dict[str, Any]) -> None:
        table = pyarrow.table(columns)
        if not writers:
            writers.append(pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd"))
        writers[0].write_table(table)

    def write(block: ScoredBlock) -> None:
        write_columns(
            {
                "word": pyarrow.array(list(block.reading.words), pyarrow.string()),
                "new": pyarrow.array(block.bands >= FIRST_NEW_BAND),
                # As pandas does: what is not a number becomes null.
                **{
                    name: pyarrow.array(values, from_pandas=True)
                    for name, values in _numbers(block).items()
                },
            }
        )

    try:
        yield write
        if not writers:
            nothing = {"word": pyarrow.string(), "new": pyarrow.bool_()}
            write_columns({name: pyarrow.array([], kind) for name, kind in nothing.items()})
    finally:
        for writer in writers:
            writer.close()
