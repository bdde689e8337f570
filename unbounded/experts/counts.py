"""Words whatever came before: all alike, or as often as they were read."""

from collections.abc import Sequence
from functools import partial
from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.experts.distribution import Alike, Distribution, even
from unbounded.experts.expert import Expert, replay
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids, Probs


@final
class Uniform(Expert):
    """Every word of the full vocabulary alike, so that no probability is zero.

    In the paper's protocol the full vocabulary counts the words of the test text too; `size` is
    told beforehand and never looks at what is being read.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise SettingError(f"a vocabulary of {size} words; at least 1 is needed")
        self.size = size

    def predict(self, hidden: Hidden) -> Distribution:
        """1 / size."""
        return Alike(len(hidden), partial(even, size=self.size))

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """1 / size; a word beyond the full vocabulary would have probability zero."""
        check_inside(words, self.size)
        return even(words, self.size)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Nothing."""


def check_inside(words: Ids, size: int) -> None:
    """Refuse words beyond the full vocabulary."""
    if len(words) and words.max() >= size:
        raise SettingError(
            f"word number {int(words.max()) + 1:,} came, but the full vocabulary was said to "
            f"have {size:,}; count the words of the text first"
        )


@final
class Unigram(Expert):
    """How often each word was read so far; even over `size` words before the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._counts = np.zeros(0, np.int64)
        self._total = 0

    def predict(self, hidden: Hidden) -> Distribution:
        """Count over total."""
        if not self._total:
            return Alike(len(hidden), partial(even, size=self.size))
        return Alike(len(hidden), partial(_shares, self._counts, self._total))

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Counts before the block plus how often the word came earlier in the block."""
        if len(words) == 0:
            return np.empty(0)
        self._counts = reaching(self._counts, words)
        seen = self._counts[words] + _earlier(words)
        totals = self._total + np.arange(len(words))
        probs: Probs = seen / np.maximum(totals, 1)
        if self._total == 0:
            probs[0] = even(words[:1], self.size)[0]
        np.add.at(self._counts, words, 1)
        self._total += len(words)
        return probs

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The counts, which the words tell again."""
        return {"counts": np.trim_zeros(self._counts, "b").copy()} if since is None else {}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the first part, and count the words of the others."""
        self._counts = parts[0]["counts"].copy()
        self._total = int(self._counts.sum())
        for delta in parts[1:]:
            replay(self, delta)


def reaching(flags: np.ndarray, words: Ids) -> np.ndarray:
    """A number for each word up to the last of these; doubling keeps growth linear over all."""
    size = int(words.max(initial=-1)) + 1
    if size <= len(flags):
        return flags
    grown = np.zeros(max(size, 2 * len(flags)), flags.dtype)
    grown[: len(flags)] = flags
    return grown


def _shares(counts: np.ndarray, total: int, words: Ids) -> Probs:
    """Count over total."""
    known = words < len(counts)
    return np.where(known, counts[np.where(known, words, 0)], 0) / total


def _earlier(words: Ids) -> Ids:
    """How often each word came earlier in the same block."""
    order = np.argsort(words, kind="stable")
    ordered = words[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    place = np.arange(len(words))
    ranks = place - np.maximum.accumulate(np.where(first, place, 0))
    out = np.empty(len(words), np.int64)
    out[order] = ranks
    return out
