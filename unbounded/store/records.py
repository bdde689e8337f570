"""The journal's records: what was read, in the order it was read, as bytes with a checksum.

    record   length u32 | crc32 u32 | kind u8, 3 zero bytes | number u64 | payload
    payload  identity: JSON, which memory this is the journal of; always the first record
             document: JSON, name and time
             words: time f64, words u32, runs u32, runs × (document, line, words) i32, and the words
             in UTF-8, one a line
             forget: JSON, ranges of positions
             file: JSON, a file that was read to its end: name, checksum, words, path
             forms: how the words of the record before it were written (below)
             verb: JSON, what begins here and can be taken back: a read or a forget

The checksum is over all but the length and itself; records are numbered from 0 without a gap.
Every encoder decodes what it made before anybody writes it: what cannot be read back is refused.
"""

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.errors import StoreError
from unbounded.shapes import Int
from unbounded.store.disk import ANEW, Disk, synced, write_all

START = b"unbounded journal 1\n"
"""What a journal begins with."""

DOCUMENT, WORDS, FORGET, IDENTITY, FILE, FORMS, VERB = 1, 2, 3, 7, 8, 9, 10

HEAD = struct.Struct("<IIB3xQ")
_WORDS = struct.Struct("<dII")
_UNSUMMED = 8

LONGEST = 1 << 28
"""Bytes of a payload: a longer one is not written, and a record that says so is damaged."""

_RANGE = 64
"""Bytes that a range of positions takes at most, as JSON."""

Runs = Int[np.ndarray, "runs 3"]
"""Document, line and number of words of each stretch that lies in one line."""

Ranges = list[tuple[int, int]]
"""Positions from the first to before the second."""


@dataclass(frozen=True)
class Record:
    """One record and where it lies; `end` is where the next begins."""

    kind: int
    number: int
    start: int
    end: int
    payload: memoryview
    crc: int


@dataclass(frozen=True)
class Words:
    """A block of words as it was read."""

    time: float
    runs: Runs
    text: memoryview

    @property
    def count(self) -> int:
        """How many words there are."""
        return int(self.runs[:, 2].sum())

    @property
    def words(self) -> list[str]:
        """The words themselves."""
        return str(self.text, "utf-8").split("\n")


def to_bytes(kind: int, number: int, payload: bytes) -> bytes:
    """A record; refuses one that could not be read back."""
    if len(payload) > LONGEST:
        raise StoreError(
            f"a record of {len(payload):,} bytes; at most {LONGEST:,} can be read back: give "
            "shorter words or names"
        )
    head = HEAD.pack(len(payload), 0, kind, number)
    crc = zlib.crc32(payload, zlib.crc32(head[_UNSUMMED:]))
    return HEAD.pack(len(payload), crc, kind, number) + payload


def records(data: memoryview, start: int, number: int, base: int = 0) -> Iterator[Record]:
    """The records from `start` on, up to the first that is not whole; `number` is the first's.

    The data begin at place `base` of the file.
    """
    while (found := record_at(data, start, number, base)) is not None:
        yield found
        start, number = found.end, number + 1


def record_at(data: memoryview, start: int, number: int, base: int = 0) -> Record | None:
    """The record at a place, if it is whole and has that number."""
    at = start - base
    if at + HEAD.size > len(data):
        return None
    length, crc, kind, found = HEAD.unpack_from(data, at)
    end = at + HEAD.size + length
    if length > LONGEST or end > len(data) or found != number:
        return None
    if zlib.crc32(data[at + _UNSUMMED : end]) != crc:
        return None
    return Record(kind, number, start, base + end, data[at + HEAD.size : end], crc)


def proved(payload: bytes, same: Callable[[memoryview], bool]) -> bytes:
    """The bytes, if their decoder gives what they were made of; refuses them otherwise."""
    try:
        good = same(memoryview(payload))
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise StoreError(
            "words, names, lines or times that could not be read back as they are; give words "
            "without line ends and lines below 2,147,483,648"
        )
    return payload


def words_payload(time: float, runs: Runs, words: Sequence[str]) -> bytes:
    """A block of words, as bytes."""
    table = np.ascontiguousarray(runs, "<i4").tobytes()
    payload = _WORDS.pack(time, len(words), len(runs)) + table + "\n".join(words).encode()

    def same(data: memoryview) -> bool:
        found = read_words(data)
        return found.words == list(words) and np.array_equal(found.runs, runs)

    return proved(payload, same)


def read_words(payload: memoryview) -> Words:
    """The block of words that the bytes hold."""
    time, count, runs = _WORDS.unpack_from(payload)
    table = np.frombuffer(payload, "<i4", 3 * runs, _WORDS.size).reshape(-1, 3)
    found = Words(time, table, payload[_WORDS.size + 12 * runs :])
    if found.count != count or count == 0:
        raise ValueError(f"{found.count} words in lines, {count} in all")
    return found


def json_payload(value: Mapping[str, Any]) -> bytes:
    """A small value, as bytes."""
    payload = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return proved(payload, lambda data: read_json(data) == value)


def read_json(payload: memoryview) -> dict[str, Any]:
    """The small value that the bytes hold."""
    value = json.loads(bytes(payload))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def ranges_payloads(ranges: Ranges) -> list[bytes]:
    """Ranges of positions, as bytes of one record or of several."""
    most = max(LONGEST // _RANGE, 1)
    every = [[start, stop] for start, stop in ranges]
    return [json_payload({"ranges": every[i : i + most]}) for i in range(0, len(every), most)]


def read_ranges(payload: memoryview) -> Ranges:
    """The ranges of positions that the bytes hold."""
    ranges: Ranges = [(int(start), int(stop)) for start, stop in read_json(payload)["ranges"]]
    if not ranges:
        raise ValueError("no ranges")
    return ranges


def identity_parts(identity: str | None) -> list[tuple[int, bytes]]:
    """Kind and payload of the first record; journals of old memories have none."""
    return [] if identity is None else [(IDENTITY, json_payload({"memory": identity}))]


def new_journal(identity: str | None) -> bytes:
    """What a journal holds in which nothing has been written down yet."""
    first = [to_bytes(kind, 0, payload) for kind, payload in identity_parts(identity)]
    return START + b"".join(first)


EMPTY = len(new_journal("0" * 16))
"""How long such a journal is; those of old memories are shorter."""


def chained(checksum: int, crc: int) -> int:
    """The running checksum behind a record: of all records' checksums up to there."""
    return zlib.crc32(crc.to_bytes(4, "little"), checksum)


def write_journal(
    disk: Disk, path: Path, identity: str | None, parts: Iterable[tuple[int, bytes]]
) -> tuple[int, int, int]:
    """Write a journal of these kinds and payloads anew, synced.

    How many records it has, where they end, and their running checksum.
    """
    with synced(disk, path, ANEW) as file:
        write_all(disk, file, START)
        number, end, checksum = 0, len(START), 0
        for kind, payload in chain(identity_parts(identity), parts):
            data = to_bytes(kind, number, payload)
            write_all(disk, file, data)
            number, end = number + 1, end + len(data)
            checksum = chained(checksum, HEAD.unpack_from(data)[1])
    return number, end, checksum


# The watermark beside a journal.

WATERMARK = "acknowledged"
"""The file that says how far the journal was acknowledged, so that damage can be told from a torn
tail.

Behind that mark a bad record can only be what a crash left of words that nobody was promised: it
is cut off. Before it, something was lost that must not be, and that is an error. So is a journal
whose running checksum at the mark is another: the two are of different histories. The mark is
written after the journal is synced and not synced itself: after a power cut it may lag behind,
never run ahead.
"""

_MARK = struct.Struct("<QQQI")
_OLD = struct.Struct("<QQ")
_SUM = struct.Struct("<I")


@dataclass(frozen=True)
class Mark:
    """So many records of that journal are on disk, up to `end`, with that running checksum."""

    generation: int
    records: int
    end: int
    checksum: int | None
    """None in a mark of format 1, which does not say how many records there are either."""


def write_mark(disk: Disk, folder: Path, mark: Mark) -> None:
    """All that it speaks of is on disk."""
    data = _MARK.pack(mark.generation, mark.records, mark.end, mark.checksum)
    file = disk.open(folder / WATERMARK, os.O_WRONLY | os.O_CREAT)
    try:
        write_all(disk, file, data + _SUM.pack(zlib.crc32(data)))
    finally:
        os.close(file)


def read_mark(folder: Path) -> Mark | None:
    """The mark, if there is one; `ValueError` if it is damaged."""
    try:
        data = (folder / WATERMARK).read_bytes()
    except FileNotFoundError:
        return None
    mark, crc = data[: -_SUM.size], data[-_SUM.size :]
    if len(mark) not in (_MARK.size, _OLD.size) or _SUM.unpack(crc)[0] != zlib.crc32(mark):
        raise ValueError("its checksum is wrong")
    if len(mark) == _OLD.size:
        generation, end = _OLD.unpack(mark)
        return Mark(generation, 0, end, None)
    return Mark(*_MARK.unpack(mark))


_COUNT = struct.Struct("<I")
_NOTHING, _OTHER = 6, 7


def forms_payload(words: Sequence[str], forms: Sequence[str]) -> bytes:
    """Forms of words, as bytes; a form has no line end in it.

    >>> data = forms_payload(["it", "rains", ".", "</s>"], ["It", " rains", "\\t.", ""])
    >>> len(data), read_forms(["it", "rains", ".", "</s>"], memoryview(data))
    (8, ['It', ' rains', '\\t.', ''])
    """
    codes = np.zeros(len(words) + len(words) % 2, np.uint8)
    others: list[str] = []
    for at, (word, form) in enumerate(zip(words, forms, strict=True)):
        space = form[:1] == " "
        bare = form[1:] if space else form
        if bare == word:
            codes[at] = space
        elif bare == word[:1].upper() + word[1:]:
            codes[at] = 2 + space
        elif bare == word.upper():
            codes[at] = 4 + space
        elif not form:
            codes[at] = _NOTHING
        else:
            codes[at] = _OTHER
            others.append(form)
    packed = (codes[::2] | codes[1::2] << 4).tobytes()
    return _COUNT.pack(len(words)) + packed + "\n".join(others).encode()


def read_forms(words: Sequence[str], payload: memoryview) -> list[str]:
    """The forms of these words that the bytes hold; `ValueError` if they are of others."""
    (count,) = _COUNT.unpack_from(payload)
    if count != len(words):
        raise ValueError(f"forms of {count} words, for {len(words)}")
    packed = np.frombuffer(payload, np.uint8, (count + 1) // 2, _COUNT.size)
    codes = np.stack([packed & 15, packed >> 4], axis=1).ravel()[:count].tolist()
    others = iter(str(payload[_COUNT.size + len(packed) :], "utf-8").split("\n"))
    return [_form(word, code, others) for word, code in zip(words, codes, strict=True)]


def _form(word: str, code: int, others: Iterator[str]) -> str:
    if code >= _NOTHING:
        return "" if code == _NOTHING else next(others)
    bare = (word, word[:1].upper() + word[1:], word.upper())[code // 2]
    return f" {bare}" if code % 2 else bare
