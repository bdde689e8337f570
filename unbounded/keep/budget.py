"""How much a memory may hold, and what goes first when it is full."""

from dataclasses import dataclass

import numpy as np

from unbounded.errors import SettingError
from unbounded.store import Store
from unbounded.store.records import Ranges

POLICIES = ("age", "surprise")

KEEP = 0.5
"""The part of a full memory that stays. Forgetting is reading again what stays: at one half, a full
memory reads every word about twice; at nine tenths it would read it ten times."""


@dataclass(frozen=True)
class Budget:
    """At most so many entries; whole lines go, the oldest or the least surprising first.

    What surprised little is what the model knew anyway: it is missed least.
    """

    entries: int
    policy: str = "age"

    def __post_init__(self) -> None:
        if self.entries < 1024:
            raise SettingError(f"a budget of {self.entries} entries; it must be at least 1,024")
        if self.policy not in POLICIES:
            raise SettingError(f"policy {self.policy!r} is unknown; use {' or '.join(POLICIES)}")

    def to_go(self, store: Store, surprise: np.ndarray) -> Ranges:
        """The lines that go so that `KEEP` of the budget is left; `surprise` is nats by entry."""
        lines = store.ledger.lines()
        left = store.ledger.kept(0, store.ledger.positions)
        counts = np.add.reduceat(left.astype(np.int64), lines.starts)
        nats = np.zeros(len(left))
        if self.policy == "surprise":
            nats[left] = surprise
        means = np.add.reduceat(nats, lines.starts) / np.maximum(counts, 1)
        # Stable: of lines as surprising as each other, and by age of all, the oldest first.
        there = np.flatnonzero(counts)
        order = there[np.argsort(means[there], kind="stable")]
        over = int(counts.sum()) - int(KEEP * self.entries)
        going = order[: int(np.searchsorted(np.cumsum(counts[order]), over)) + 1]
        return sorted(
            zip(
                lines.starts[going].tolist(),
                (lines.starts + lines.lengths)[going].tolist(),
                strict=True,
            )
        )
