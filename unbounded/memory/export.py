"""A memory as a table: a row a word, in the order they were read, or document by document."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from unbounded.cluster import Engine
from unbounded.cluster.gathering import gathered
from unbounded.cluster.resharding import lengths
from unbounded.errors import MissingExtra
from unbounded.store import Store


def export(store: Store, path: str | Path) -> int:
    """Write every word that is left to a Parquet file; how many.

    Columns: word, document, line, time. Needs the extra `parquet`.
    """
    names = [document.name for document in store.catalog.documents]
    count = 0
    with _table(path) as write:
        for words, left in store.blocks():
            runs = np.repeat(words.runs[:, :2], words.runs[:, 2], axis=0)[left]
            if not len(runs):
                continue
            every = words.words
            write(
                [every[i] for i in np.flatnonzero(left)],
                [names[i] for i in runs[:, 0].tolist()],
                runs[:, 1],
                words.time,
            )
            count += len(runs)
    return count


def export_shards(engine: Engine, path: str | Path) -> int:
    """The same of all shards together, one document after the other."""
    count = 0
    with _table(path) as write:
        for document, length in sorted(lengths(engine).items()):
            for piece in gathered(engine, document, length):
                write(piece.words, [document] * len(piece.words), piece.lines, piece.time)
                count += len(piece.words)
    return count


_Write = Callable[[Sequence[str], Sequence[str], np.ndarray, float], None]


@contextmanager
def _table(path: str | Path) -> Iterator[_Write]:
    """Writes words, documents, lines and when they were read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("pyarrow, which writes Parquet,", "parquet") from None
    schema = pa.schema(
        [
            ("word", pa.string()),
            ("document", pa.string()),
            ("line", pa.int32()),
            ("time", pa.timestamp("us", tz="UTC")),
        ]
    )
    with parquet.ParquetWriter(path, schema) as file:

        def write(
            words: Sequence[str], documents: Sequence[str], lines: np.ndarray, time: float
        ) -> None:
            when = np.full(len(words), round(time * 1e6), "datetime64[us]")
            rows = {"word": words, "document": documents, "line": lines, "time": when}
            file.write_table(pa.table(rows, schema=schema))

        yield write
