"""Which words are to be forgotten: documents, what is older than a day, lines, the last ones."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import numpy as np

from unbounded.corpus import Splitter
from unbounded.errors import SettingError
from unbounded.store import TextLog
from unbounded.store.catalog import merged
from unbounded.store.records import Ranges

SECONDS = 10.0
"""What a batch of lines may take. `re` takes for ever over some patterns, such as `^(a+)+$`, and
nothing within a process stops it; a matcher of linear time would know other patterns than it."""

BATCH = 1 << 20
"""Characters that are looked through at once; milliseconds for most patterns."""

SHOWN = 100
"""Characters of a pattern that an error shows."""

_CHILD = """
import json, re, sys
pattern, lines = json.load(sys.stdin)
try:
    search = re.compile(pattern, re.IGNORECASE).search
    print([i for i, line in enumerate(lines) if search(line)])
except (re.error, OverflowError, RecursionError) as error:
    print(json.dumps(str(error) or "too deep"))
"""

Key = TypeVar("Key")


@dataclass(frozen=True)
class Choice:
    """One of four ways to say what is to be forgotten."""

    documents: Sequence[str] | None = None
    before: datetime | None = None
    matching: str | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        ways = (self.documents, self.before, self.matching, self.last)
        given = [way for way in ways if way is not None]
        if len(given) != 1:
            raise SettingError(
                f"{len(given)} ways to say what to forget were given; give one of document, "
                "before, matching and last"
            )


def is_part_of(document: str, name: str) -> bool:
    """Whether a document is one read under a name; a file's later ones are NAME#2, NAME#3, …

    >>> [is_part_of(document, "a.txt") for document in ("a.txt", "a.txt#12", "a.txt#b", "b.txt")]
    [True, True, False, False]
    """
    rest = document.removeprefix(name)
    return document.startswith(name) and (not rest or re.fullmatch(r"#\d+", rest) is not None)


def chosen(store: TextLog, splitter: Splitter, choice: Choice) -> Ranges:
    """The positions that a choice names, those already gone left out."""
    if choice.documents is not None:
        ranges = _documents(store, choice.documents)
    elif choice.before is not None:
        ranges = _before(store, choice.before)
    elif choice.matching is not None:
        ranges = _matching(store, choice.matching, splitter)
    else:
        assert choice.last is not None
        ranges = _last(store, choice.last)
    return _still_there(store, ranges)


def _documents(store: TextLog, names: Sequence[str]) -> Ranges:
    """All words read under some names."""
    numbers: list[int] = []
    for name in names:
        mine = [i for i, one in enumerate(store.catalog.documents) if is_part_of(one.name, name)]
        if not mine:
            raise SettingError(
                f"{store.folder} never read a document named {name!r}; give a name as it was read"
            )
        numbers += mine
    lines = store.catalog.lines()
    theirs = np.isin(lines.documents, numbers)
    return ranges_of(lines.starts[theirs], lines.lengths[theirs])


def _before(store: TextLog, when: datetime) -> Ranges:
    first, times = store.catalog.times()
    ends = np.append(first, store.catalog.positions)[1:]
    old = times < when.timestamp()
    return ranges_of(first[old], (ends - first)[old])


def _matching(store: TextLog, pattern: str, splitter: Splitter) -> Ranges:
    """Whole lines in whose plain text the pattern is found; case is ignored."""
    lines = store.catalog.lines()
    words = [word for block, _ in store.blocks() for word in block.words]
    every = enumerate(zip(lines.starts.tolist(), lines.lengths.tolist(), strict=True))
    texts = ((i, splitter.plain(words[at : at + length])) for i, (at, length) in every)
    found = list(matched(pattern, texts))
    return ranges_of(lines.starts[found], lines.lengths[found])


def _last(store: TextLog, count: int) -> Ranges:
    if count < 1:
        raise SettingError(f"the last {count} words; it must be at least 1")
    catalog = store.catalog
    if not catalog.entries:
        return []
    first = max(catalog.entries - count, 0)
    return [(int(catalog.positions_of(np.array([first]))[0]), catalog.positions)]


def ranges_of(starts: np.ndarray, lengths: np.ndarray) -> Ranges:
    """Stretches of positions that begin there and are so long."""
    return list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))


def _still_there(store: TextLog, ranges: Ranges) -> Ranges:
    """What of these ranges is left, in order."""
    out: Ranges = []
    for start, stop in merged(ranges).tolist():
        left = np.concatenate([[False], store.catalog.kept(start, stop - start), [False]])
        edges = (start + np.flatnonzero(left[1:] != left[:-1])).tolist()
        out += zip(edges[::2], edges[1::2], strict=True)
    return out


# Regular expressions, in a process that can be stopped.


def matched(pattern: str, lines: Iterable[tuple[Key, str]]) -> Iterator[Key]:
    """The keys of those lines in which a pattern is found, whatever the case of letters."""
    shown = repr(pattern if len(pattern) <= SHOWN else f"{pattern[:SHOWN]}…")
    command = [sys.executable, "-I", "-S", "-c", _CHILD]
    for batch in _batches(lines):
        asked = json.dumps([pattern, [text for _, text in batch]]).encode()
        try:
            ran = subprocess.run(command, input=asked, capture_output=True, timeout=SECONDS)
            found = json.loads(ran.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            raise SettingError(
                f"{shown} takes too long over some lines ({SECONDS:.0f} seconds and more), or too "
                "much memory; give one without repeats of repeats"
            ) from None
        if isinstance(found, str):
            raise SettingError(f"{shown} is not a regular expression ({found})")
        yield from (batch[i][0] for i in found)


def _batches(lines: Iterable[tuple[Key, str]]) -> Iterator[list[tuple[Key, str]]]:
    """Stretches of lines; one at least, so that a pattern is looked at where there is no line."""
    batch: list[tuple[Key, str]] = []
    length = 0
    for line in lines:
        batch.append(line)
        length += len(line[1])
        if length >= BATCH or len(batch) >= BATCH // 64:
            yield batch
            batch, length = [], 0
    yield batch
