"""Distributions over words, one a step: asked for one word, or for all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, final, runtime_checkable

import numpy as np

from unbounded.shapes import Float, Int
from unbounded.types import Hidden, Ids, Probs

Dense = Float[np.ndarray, "n size"]


class Distribution(ABC):
    """A probability for every word at each of n steps; changes nothing when asked."""

    @abstractmethod
    def prob(self, words: Ids) -> Probs:
        """The probability of one word a step."""

    @abstractmethod
    def dense(self, size: int) -> Dense:
        """The probability of each of the first `size` words at each step."""


def even(words: Ids, size: int) -> Probs:
    """Every one of `size` words alike, and nothing beyond the last.

    >>> even(np.array([0, 3, 4]), size=4).tolist()
    [0.25, 0.25, 0.0]
    """
    return np.where(words < size, 1 / size, 0.0)


@final
class Alike(Distribution):
    """The same at every step: what `ask` says of words, whatever the hidden state."""

    def __init__(self, steps: int, ask: Callable[[Ids], Probs]) -> None:
        self._steps = steps
        self._ask = ask

    def prob(self, words: Ids) -> Probs:
        """What it says of one word a step."""
        return self._ask(words)

    def dense(self, size: int) -> Dense:
        """What it says of each of the first `size` words."""
        return np.tile(self._ask(np.arange(size)), (self._steps, 1))


@final
class Sparse(Distribution):
    """Weighted words: what neighbors vote for; a step without any vote is even over `size` words.

    >>> votes = Sparse(np.array([[5, 2, 5]]), np.array([[1.0, 1.0, 2.0]]), size=8)
    >>> votes.prob(np.array([5])).tolist()
    [0.75]
    """

    def __init__(
        self, words: Int[np.ndarray, "n k"], weights: Float[np.ndarray, "n k"], size: int
    ) -> None:
        self._words = words
        self._weights = weights
        self._size = size
        self._totals = weights.sum(axis=1, dtype=np.float64)

    def prob(self, words: Ids) -> Probs:
        """The share of votes for one word a step."""
        votes = (self._weights * (self._words == words[:, None])).sum(axis=1, dtype=np.float64)
        voted = self._totals > 0
        shares = votes / np.where(voted, self._totals, 1)
        return np.where(voted, shares, even(words, self._size))

    def dense(self, size: int) -> Dense:
        """The share of votes for every word."""
        out = np.tile(even(np.arange(size), self._size), (len(self._words), 1))
        out[self._totals > 0] = 0
        steps, columns = np.nonzero((self._weights > 0) & (self._words < size))
        shares = self._weights[steps, columns] / self._totals[steps]
        np.add.at(out, (steps, self._words[steps, columns]), shares)
        return out


@runtime_checkable
class Output(Protocol):
    """What turns states into probabilities of the words that a network knows."""

    base_size: int

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for OOV words."""

    def dense(self, hidden: Hidden) -> Dense:
        """The probability of every word the network knows, at each step."""


@final
class Networked(Distribution):
    """What the network itself says."""

    def __init__(self, lm: Output, hidden: Hidden) -> None:
        self._lm = lm
        self._hidden = hidden

    def prob(self, words: Ids) -> Probs:
        """The network's probability; zero for OOV words."""
        return self._lm.prob(self._hidden, words)

    def dense(self, size: int) -> Dense:
        """The network's probability of each word it knows, zero for all others."""
        out = np.zeros((len(self._hidden), size))
        known = min(size, self._lm.base_size)
        out[:, :known] = self._lm.dense(self._hidden)[:, :known]
        return out


@final
class Mixed(Distribution):
    """Distributions added up with weights."""

    def __init__(self, parts: Sequence[Distribution], weights: Float[np.ndarray, " m"]) -> None:
        self._parts = parts
        self._weights = weights

    def prob(self, words: Ids) -> Probs:
        """The weighted sum."""
        mixed: Probs = np.stack([part.prob(words) for part in self._parts], 1) @ self._weights
        return mixed

    def dense(self, size: int) -> Dense:
        """The weighted sum, for every word."""
        pairs = zip(self._parts, self._weights, strict=True)
        return sum((part.dense(size) * weight for part, weight in pairs), np.zeros((1, 1)))
