"""A memory as a table: a row a word, in the order they were read."""

from pathlib import Path

import numpy as np

from unbounded.errors import MissingExtra
from unbounded.store import Store


def export(store: Store, path: str | Path) -> int:
    """Write every word that is left to a Parquet file; how many.

    Columns: word, document, line, time. Needs the extra `parquet`.
    """
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
    names = [document.name for document in store.ledger.documents]
    count = 0
    with parquet.ParquetWriter(path, schema) as file:
        for words, left in store.blocks():
            runs = np.repeat(words.runs[:, :2], words.runs[:, 2], axis=0)[left]
            if not len(runs):
                continue
            every = words.words
            rows = {
                "word": [every[i] for i in np.flatnonzero(left)],
                "document": [names[i] for i in runs[:, 0].tolist()],
                "line": runs[:, 1],
                "time": np.full(len(runs), round(words.time * 1e6), "datetime64[us]"),
            }
            file.write_table(pa.table(rows, schema=schema))
            count += len(runs)
    return count
