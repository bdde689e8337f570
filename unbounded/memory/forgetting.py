"""Which words are to be forgotten: by choice, or so that a memory keeps to its budget.

One chooses documents, what is older than a day, lines, or the last words; a full memory what goes
first by its policy, and it says what that cost.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import TypeVar, final

import numpy as np

from unbounded.corpus import Splitter
from unbounded.errors import SettingError, check_type
from unbounded.evaluation.metrics import surprise
from unbounded.memory.learned import LearnedState
from unbounded.model import Reading
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
    return _ranges(lines.starts[theirs], lines.lengths[theirs])


def _before(store: TextLog, when: datetime) -> Ranges:
    first, times = store.catalog.times()
    ends = np.append(first, store.catalog.positions)[1:]
    old = times < when.timestamp()
    return _ranges(first[old], (ends - first)[old])


def _matching(store: TextLog, pattern: str, splitter: Splitter) -> Ranges:
    """Whole lines in whose plain text the pattern is found; case is ignored."""
    lines = store.catalog.lines()
    words = [word for block, _ in store.blocks() for word in block.words]
    every = enumerate(zip(lines.starts.tolist(), lines.lengths.tolist(), strict=True))
    texts = ((i, splitter.plain(words[at : at + length])) for i, (at, length) in every)
    found = list(matched(pattern, texts))
    return _ranges(lines.starts[found], lines.lengths[found])


def _last(store: TextLog, count: int) -> Ranges:
    if count < 1:
        raise SettingError(f"the last {count} words; it must be at least 1")
    catalog = store.catalog
    if not catalog.entries:
        return []
    first = max(catalog.entries - count, 0)
    return [(int(catalog.positions_of(np.array([first]))[0]), catalog.positions)]


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> Ranges:
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


# A memory that is full.

POLICIES = ("age", "surprise")

KEEP = 0.5
"""The part of a full memory that stays. Forgetting is reading again what stays: at one half, a full
memory reads every word about twice; at nine tenths it would read it ten times."""

FEWEST, SMALLEST = 1024, 16_000_000
"""Entries and bytes below which a budget makes no sense."""

JUDGED = 4096
"""Words after forgetting that are read twice, to tell what it cost."""

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


@dataclass(frozen=True)
class Budget:
    """At most so many entries, bytes on disk, or both; whole lines go, by age or by surprise.

    By age the oldest go first, by surprise the least surprising: what the model knew anyway.
    """

    entries: int | None = None
    policy: str = "age"
    bytes: int | None = None
    """All that the memory's folder holds, what is being written included."""

    def __post_init__(self) -> None:
        for name in ("entries", "bytes"):
            check_type(getattr(self, name), name, int, NoneType)
        if self.entries is None and self.bytes is None:
            raise SettingError("a budget of nothing; give entries or bytes")
        if self.entries is not None and self.entries < FEWEST:
            raise SettingError(
                f"a budget of {self.entries} entries; it must be at least {FEWEST:,}"
            )
        if self.bytes is not None and self.bytes < SMALLEST:
            raise SettingError(f"a budget of {self.bytes:,} bytes; it must be at least 16 MB")
        if self.policy not in POLICIES:
            raise SettingError(f"policy {self.policy!r} is unknown; use {' or '.join(POLICIES)}")

    @staticmethod
    def parse(text: str, policy: str = "age") -> "Budget":
        """Read `1M`, which is entries, or `500MB`, which is bytes.

        >>> Budget.parse("250k").entries, Budget.parse("1.5 GB").bytes
        (250000, 1500000000)
        """
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(b?)\s*", text.lower())
        if found is None:
            raise SettingError(f"{text!r} is not a budget; write 1M for entries or 500MB for bytes")
        count = round(float(found[1]) * _UNITS[found[2]])
        return Budget(None, policy, count) if found[3] else Budget(count, policy)

    def __str__(self) -> str:
        parts = [(self.entries, "entries"), (self.bytes, "bytes")]
        said = " and ".join(f"{count:,} {what}" for count, what in parts if count is not None)
        return f"a budget of {said} by {self.policy}"

    def exceeded(self, store: TextLog, learned: LearnedState, words: int) -> bool:
        """Whether it could be if so many words came: with a snapshot more than there are now."""
        if self.entries is not None and store.catalog.entries + words > self.entries:
            return True
        return self.bytes is not None and store.bytes + learned.bytes > self.bytes

    def to_go(self, store: TextLog, surprise: np.ndarray) -> Ranges:
        """The lines that go so that `KEEP` of what there is is left; `surprise` is by entry."""
        lines = store.catalog.lines()
        left = store.catalog.kept(0, store.catalog.positions)
        counts = np.add.reduceat(left.astype(np.int64), lines.starts)
        nats = np.zeros(len(left))
        if self.policy == "surprise":
            nats[left] = surprise
        means = np.add.reduceat(nats, lines.starts) / np.maximum(counts, 1)
        # Stable: of lines as surprising as each other, and by age of all, the oldest first.
        there = np.flatnonzero(counts)
        order = there[np.argsort(means[there], kind="stable")]
        full = int(counts.sum()) if self.bytes is not None else self.entries or 0
        over = int(counts.sum()) - int(KEEP * full)
        going = order[: int(np.searchsorted(np.cumsum(counts[order]), over)) + 1]
        return sorted(_ranges(lines.starts[going], lines.lengths[going]))


@final
class Cost:
    """What forgetting cost: the next words are read by the state that forgot nothing, too."""

    def __init__(self, before: LearnedState) -> None:
        self._before: LearnedState | None = before
        self._words = 0
        self._nats = np.zeros(2)

    def read(self, reading: Reading) -> str | None:
        """Compare a block; once there were enough, what it cost."""
        if self._before is None:
            return None
        whole = self._before.read(reading.words)
        self._nats += [surprise(found.prob).sum() for found in (whole, reading)]
        self._words += len(reading.words)
        return self.verdict() if self._words >= JUDGED else None

    def verdict(self) -> str | None:
        """What it cost, by the words there were; the state that forgot nothing is let go."""
        if self._before is None or not self._words:
            return None
        self._before = None
        before, after = np.exp(self._nats / self._words).tolist()
        return (
            f"forgetting cost {after / before - 1:+.1%} of perplexity ({before:,.1f} with all that "
            f"was there, {after:,.1f} without) over the next {self._words:,} words"
        )
