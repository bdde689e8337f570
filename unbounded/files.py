"""Files that are either wholly there or not there at all, and where those of a user go."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """The user's cache directory: `XDG_CACHE_HOME` or ~/.cache, and in it `unbounded`."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "unbounded"


def parse_json(data: str | bytes) -> Any:
    """What JSON says; a `ValueError` at all that is none, and at what is nested too deep to read.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deep
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A file beside `path` to be filled, which is renamed into place once it is on disk.

    Whoever opens `path` sees the old content or the new, never a part: a crash or a full disk
    leaves the old file as it was and no litter behind.
    """
    if path.is_dir():
        raise IsADirectoryError(
            EISDIR, "is a folder, and a file was to be written there", str(path)
        )
    aside = path.with_name(f".{path.name}.{os.getpid()}.aside")
    try:
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(aside, path)
    except OSError as error:
        if error.filename in (None, str(aside)):
            # A full disk tells no name, and that of the file aside says nothing to anybody.
            error.filename = str(path)
        raise
    finally:
        aside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a text file as `write_atomically` does.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text_atomically(Path(folder) / "note.txt", "kept")
    ...     [file.read_text() for file in Path(folder).iterdir()]
    ['kept']
    """
    with write_atomically(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")
