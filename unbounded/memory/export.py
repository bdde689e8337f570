"""A memory as a table: a row a word, in the order they were read, or document by document."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from unbounded.errors import MissingExtra
from unbounded.memory.backend import Rows


def write_table(rows: Iterable[Rows], path: Path) -> int:
    """Write words to a Parquet file; how many.

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
    count = 0
    with parquet.ParquetWriter(path, schema) as file:
        for words, documents, lines, time in rows:
            when = np.full(len(words), round(time * 1e6), "datetime64[us]")
            columns = {"word": words, "document": documents, "line": lines, "time": when}
            file.write_table(pa.table(columns, schema=schema))
            count += len(words)
    return count
