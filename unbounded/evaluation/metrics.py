"""Nats, perplexity, bits per character, and which words they come from; all as streaming sums."""

import math
from typing import final

import numpy as np

from unbounded.types import Ids, Probs

BANDS = (
    "known, rank 1 to 1,000",
    "known, rank 1,001 to 10,000",
    "known, rank over 10,000",
    "new, 1st time",
    "new, 2nd time",
    "new, 3rd or 4th time",
    "new, 5th to 8th time",
    "new, 9th time on",
)
"""Words of the network by their rank in training, all others by how often they have come."""

FIRST_NEW_BAND = 3
"""Bands from here on hold words that the network does not know."""


def surprise(probs: Probs) -> Probs:
    """Nats a word; infinite where the probability is zero."""
    with np.errstate(divide="ignore"):
        nats: Probs = -np.log(probs)
    return nats


@final
class Tally:
    """Nats over words and characters.

    >>> tally = Tally()
    >>> tally.add(float(surprise(np.array([0.5, 0.125])).sum()), tokens=2, characters=8)
    >>> round(tally.perplexity, 6), tally.bits_per_character
    (4.0, 0.5)
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.nats = 0.0
        self.characters = 0

    def add(self, nats: float, tokens: int, characters: int) -> None:
        """Count words that took so many nats in all."""
        self.tokens += tokens
        self.nats += nats
        self.characters += characters

    @property
    def perplexity(self) -> float:
        """e to the nats a word; not a number before the first word, infinite beyond any float."""
        return self.per(self.tokens)

    def per(self, words: int) -> float:
        """The perplexity if the same nats are for so many words."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.nats / words)) if words else math.nan

    @property
    def bits_per_character(self) -> float:
        """Bits over characters; not a number before the first character."""
        return self.nats / math.log(2) / self.characters if self.characters else math.nan


@final
class FrequencyBuckets:
    """Sorts words into `BANDS`, before each is counted.

    >>> FrequencyBuckets(base_size=2).bands(np.array([0, 5, 5, 1, 5])).tolist()
    [0, 3, 4, 0, 5]
    """

    def __init__(self, base_size: int) -> None:
        self._base_size = base_size
        self._seen: dict[int, int] = {}

    def bands(self, words: Ids) -> Ids:
        """The number of each word's band, counting as it goes."""
        bands = np.searchsorted([1_000, 10_000], words, side="right")
        # Only OOV words take this loop, a few in a hundred words.
        oov = np.flatnonzero(words >= self._base_size)
        for t, word in zip(oov.tolist(), words[oov].tolist(), strict=True):
            before = self._seen.get(word, 0)
            self._seen[word] = before + 1
            bands[t] = FIRST_NEW_BAND + min(before.bit_length(), 4)
        return bands


STEP, HIGHEST = 0.01, 50.0
"""Numbers are told apart by so much, up to so much; nats a word are rarely above 20."""


@final
class OnlineQuantile:
    """The part of all numbers so far that were lower, those that were the same counted half.

    >>> seen = OnlineQuantile()
    >>> [seen.add(number) for number in (3.0, 5.0, 4.0, 9.0)]
    [None, 1.0, 0.5, 1.0]
    """

    def __init__(self) -> None:
        self._counts = np.zeros(int(HIGHEST / STEP) + 1, np.int64)
        self._total = 0

    def add(self, number: float) -> float | None:
        """Where the number stands among those before it; None for the first."""
        place = int(min(max(number, 0.0), HIGHEST) / STEP)
        lower = float(self._counts[:place].sum() + self._counts[place] / 2)
        found = lower / self._total if self._total else None
        self._counts[place] += 1
        self._total += 1
        return found
