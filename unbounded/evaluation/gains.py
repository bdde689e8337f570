"""Which words one row predicts better than another, and which worse."""

from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END
from unbounded.evaluation.metrics import surprise
from unbounded.evaluation.progressive import ScoredBlock


@dataclass(frozen=True)
class Gain:
    """One word: how many nats it saved in all (negative: cost), over how many occurrences."""

    word: str
    nats: float
    times: int


@final
class Gains:
    """Which words one row gained over another, and lost: nats a word type, summed."""

    def __init__(self, base: str, other: str) -> None:
        self.base = base
        self.other = other
        self._words: dict[int, str] = {}
        self._nats = np.zeros(0)
        self._times = np.zeros(0, np.int64)

    def __call__(self, block: ScoredBlock) -> None:
        """Add up a block."""
        ids = block.reading.ids
        before, after = surprise(block.probs[self.base]), surprise(block.probs[self.other])
        # Where both are infinite nothing is gained.
        gained = np.subtract(before, after, out=np.zeros(len(ids)), where=before != after)
        kinds, first, which = np.unique(ids, return_index=True, return_inverse=True)
        self._reach(int(ids.max(initial=-1)) + 1)
        for i in np.flatnonzero(self._times[kinds] == 0).tolist():
            self._words[int(kinds[i])] = block.reading.words[first[i]]
        self._nats[kinds] += np.bincount(which, gained, minlength=len(kinds))
        self._times[kinds] += np.bincount(which, minlength=len(kinds))

    def most(self, count: int, *, lost: bool = False) -> list[Gain]:
        """The words with the largest sums; with `lost`, those with the most negative ones."""
        nats = -self._nats if lost else self._nats
        # A stable order of first sight among equals keeps reports the same from run to run.
        ordered = np.argsort(-nats, kind="stable")[: count + 1].tolist()
        found = [
            Gain(self._words[i], float(self._nats[i]), int(self._times[i]))
            for i in ordered
            if nats[i] > 0 and self._words[i] != SENTENCE_END
        ]
        return found[:count]

    def _reach(self, size: int) -> None:
        if size > len(self._nats):
            # Doubling keeps growth by one word at a time linear over all.
            more = max(size, 2 * len(self._nats)) - len(self._nats)
            self._nats = np.append(self._nats, np.zeros(more))
            self._times = np.append(self._times, np.zeros(more, np.int64))
