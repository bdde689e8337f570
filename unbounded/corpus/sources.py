"""Paths to streams of bytes: files, folders, standard input, plain or compressed."""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from unbounded.corpus.formats import ending, why_left_out
from unbounded.errors import CorpusError

STDIN = "-"
CHUNK = 1 << 18
"""No piece of what is read is longer than this, packed or unpacked."""

# Four bytes of zstd can stand for 128 KiB, and its decoder takes no limit on what it gives back:
# feeding it little at a time keeps a step below 2 MiB.
_ZSTD_STEP = 64
_MAGIC = 6


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes to be read; `size` is None where only reading will tell."""

    name: str
    path: str
    size: int | None


def find_sources(
    paths: Sequence[str | Path], field: str | None = None, left_out: Counter[str] | None = None
) -> list[Source]:
    """Give what is to be read, in order: each path as given, each folder's text files sorted.

    `left_out` is told how many files of folders are of which other kind; of those kinds that hold
    fields, only what has a `field` named is read. A file that is named is read whatever it is.
    """
    out = Counter() if left_out is None else left_out
    return [source for path in paths for source in _sources(os.fspath(path), field, out)]


def _sources(path: str, field: str | None, left_out: Counter[str]) -> Iterator[Source]:
    if path == STDIN:
        yield Source(path, path, None)
        return
    status = _status(path)
    if not stat.S_ISDIR(status.st_mode):
        yield Source(_shown(path), path, status.st_size if stat.S_ISREG(status.st_mode) else None)
        return
    found = False
    for inside in _walk(path):
        if why_left_out(inside, field) is not None:
            left_out[ending(inside)] += 1
            continue
        found = True
        yield Source(_shown(inside), inside, _status(inside).st_size)
    if not found:
        there = described(left_out, field) or "it is empty"
        raise CorpusError(
            f"{_shown(path)} is a folder without text ({there}); text, source code, HTML (plain "
            "or .gz .bz2 .xz .zst) are needed; name other files one by one"
        )


def described(left_out: Mapping[str, int], field: str | None) -> str:
    """How many files of which kind were left out, and what would help.

    >>> described({".jpg": 2, ".csv": 1}, None)
    '2 .jpg (to read one as plain text, name it), 1 .csv (say which field or column: --field NAME)'
    """
    kinds: dict[str, list[str]] = {}
    for kind, count in sorted(left_out.items(), key=lambda item: -item[1]):
        kinds.setdefault(why_left_out(kind and f"x{kind}", field) or "", []).append(
            f"{count:,} {kind}"
        )
    return ", ".join(f"{' '.join(some)} ({why})" for why, some in kinds.items())


def _walk(folder: str) -> Iterator[str]:
    """Go through a folder in sorted order; hidden things and links to folders are left out."""
    left = _entries(folder)
    while left:
        entry = left.pop()
        if entry.is_dir(follow_symlinks=False):
            left += _entries(entry.path)
        elif os.path.isfile(entry.path):
            # Not by the entry, which fails at a link that leads to itself.
            yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List what is in a folder, the first last."""
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise unreadable(folder, error) from None
    return sorted(seen, key=lambda entry: entry.name, reverse=True)


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_chunks(source: Source, on_read: Callable[[int], None]) -> Iterator[bytes]:
    """Stream a source's bytes, unpacked; `on_read` hears how many bytes were taken from disk."""
    try:
        if source.path == STDIN:
            # A pipe gives what it has; waiting for more would hold up a live stream.
            read = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
            yield from _unpacked(_Heard(read, on_read))
        else:
            with open(source.path, "rb", buffering=0) as file:
                yield from _unpacked(_Heard(file.read, on_read))
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        raise CorpusError(
            f"{source.name} is a damaged archive ({_one_line(error)}); a whole one is needed; "
            "copy or download it again"
        ) from None
    except OSError as error:
        raise unreadable(source.path, error) from None


class _Heard(io.RawIOBase):
    """A stream whose reads are reported, and whose first read is long enough to know its kind."""

    def __init__(self, read: Callable[[int], bytes], on_read: Callable[[int], None]) -> None:
        self._read = read
        self._on_read = on_read
        self._needed = _MAGIC

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        room = memoryview(buffer)
        filled = 0
        while data := self._read(len(room) - filled):
            room[filled : filled + len(data)] = data
            filled += len(data)
            if filled >= min(self._needed, len(room)):
                break
        self._needed = 0
        self._on_read(filled)
        return filled


def _unpacked(raw: _Heard) -> Iterator[bytes]:
    """Unpack by what the first bytes say, not by the name."""
    stream = io.BufferedReader(raw, CHUNK)
    magic = stream.peek(_MAGIC)[:_MAGIC]
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        yield from _zstd(stream.read1)
        return
    read: Callable[[int], bytes] = stream.read1
    if magic.startswith(b"\x1f\x8b"):
        read = gzip.GzipFile(fileobj=stream).read1
    elif magic.startswith(b"BZh"):
        read = bz2.BZ2File(stream).read1
    elif magic == b"\xfd7zXZ\x00":
        read = lzma.LZMAFile(stream).read1  # noqa: SIM115
    while data := read(CHUNK):
        yield data


def _zstd(read: Callable[[int], bytes]) -> Iterator[bytes]:
    context = zstandard.ZstdDecompressor()
    decoder = context.decompressobj()
    fresh = True
    while data := read(CHUNK):
        for at in range(0, len(data), _ZSTD_STEP):
            step = data[at : at + _ZSTD_STEP]
            while step:
                text = decoder.decompress(step)
                for start in range(0, len(text), CHUNK):
                    yield text[start : start + CHUNK]
                fresh, step = decoder.eof, decoder.unused_data
                if fresh:
                    decoder = context.decompressobj()
    if not fresh:
        raise EOFError("it ends in the middle of a frame")


def unreadable(path: str, error: Exception) -> CorpusError:
    """What to say of a path that the system does not let us read."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return CorpusError(
        f"{_shown(path) or 'an empty path'} cannot be read ({_one_line(why)}); a text file, a "
        "folder or - is needed; check the path and its permissions"
    )


def _shown(path: str) -> str:
    """Write a path on one line and in valid Unicode, whatever bytes it is made of."""
    return _one_line(os.fsencode(path).decode("utf-8", "replace"))


def _one_line(text: object) -> str:
    return " ".join(str(text).split("\n"))
