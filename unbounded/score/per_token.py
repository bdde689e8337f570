"""Word by word: what each expert and each row gave every word, as JSON lines or Parquet."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.errors import MissingExtra
from unbounded.score.progressive import ScoredBlock, Watcher


@contextmanager
def per_token_writer(path: Path) -> Iterator[Watcher]:
    """Write a line or a Parquet row a word (by the file's suffix); complete only when closed.

    Columns: `word`, `new` (not a word of the network), `expert.NAME` and `row.NAME` in nats, and
    `weight.ROW.EXPERT`. A word that an expert holds for impossible has no nats there (null).
    """
    aside = path.with_name(f".{path.name}.aside")
    opened = _parquet(aside) if path.suffix == ".parquet" else _json_lines(aside)
    try:
        with opened as watcher:
            yield watcher
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _columns(block: ScoredBlock) -> dict[str, list[Any]]:
    reading = block.reading
    columns: dict[str, list[Any]] = {"word": list(reading.words), "new": (block.bands >= 3).tolist()}
    for i, name in enumerate(reading.experts):
        columns[f"expert.{name}"] = _nats(reading.table[:, i])
    for name, probs in block.probs.items():
        columns[f"row.{name}"] = _nats(probs)
        weights = block.weights[name].round(6)
        for i, expert in enumerate(block.row_experts[name]):
            columns[f"weight.{name}.{expert}"] = weights[:, i].tolist()
    return columns


def _nats(probs: np.ndarray) -> list[float | None]:
    with np.errstate(divide="ignore"):
        nats = -np.log(probs)
    return [round(value, 6) if np.isfinite(value) else None for value in nats.tolist()]


@contextmanager
def _json_lines(path: Path) -> Iterator[Watcher]:
    with path.open("w", encoding="utf-8") as file:

        def write(block: ScoredBlock) -> None:
            columns = _columns(block)
            for values in zip(*columns.values(), strict=True):
                record = dict(zip(columns, values, strict=True))
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _parquet(path: Path) -> Iterator[Watcher]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow, which writes Parquet,", "parquet") from None
    writers: list[Any] = []

    def write(block: ScoredBlock) -> None:
        columns = _columns(block)
        types = {"word": pyarrow.string(), "new": pyarrow.bool_()}
        schema = pyarrow.schema([(name, types.get(name, pyarrow.float64())) for name in columns])
        if not writers:
            writers.append(pyarrow.parquet.ParquetWriter(path, schema, compression="zstd"))
        writers[0].write_table(pyarrow.table(columns, schema=schema))

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
