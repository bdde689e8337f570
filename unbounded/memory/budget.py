"""How much a memory may hold, what goes first when it is full, and what that cost."""

import re
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.evaluation.metrics import surprise
from unbounded.memory.forgetting import ranges_of
from unbounded.memory.learned import LearnedState
from unbounded.model import Reading
from unbounded.store import TextLog
from unbounded.store.records import Ranges

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
        return sorted(ranges_of(lines.starts[going], lines.lengths[going]))


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
