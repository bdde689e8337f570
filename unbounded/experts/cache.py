"""The caches: what followed the nearest of the hidden states that were read."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from unbounded.datastore import Datastore, Neighbors, Votes
from unbounded.datastore.datastore import Remote
from unbounded.errors import SettingError
from unbounded.experts.distribution import Dense, Distribution, Sparse, even
from unbounded.experts.expert import Expert
from unbounded.experts.kernels import Kernel, votes_by
from unbounded.mixture.mixture import Online
from unbounded.shapes import Float
from unbounded.states import Arrays, part, under
from unbounded.types import Distances, Hidden, Ids, Probs

PAPER_K = 1024
""" "Unless said otherwise, we query the 1,024 nearest neighbors." """

LARGE = 2**19
"""Entries from which on that is too few: their words are ever fewer of those that were read."""


@dataclass(frozen=True)
class Neighborhood:
    """`k` neighbors, and an eighth as many more from `large` entries on and with each doubling.

    >>> [Neighborhood().at(entries) for entries in (10**3, 10**6, 5 * 10**6, 10**7, 10**8)]
    [1024, 1152, 1536, 1664, 2048]
    >>> Neighborhood.of(32).at(10**9)
    32
    """

    k: int = PAPER_K
    large: int | None = LARGE

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError(f"k is {self.k}; at least 1 neighbor is needed")

    @staticmethod
    def of(k: int | None) -> "Neighborhood":
        """Always k, or as many as seem best."""
        return Neighborhood() if k is None else Neighborhood(k, large=None)

    def at(self, entries: int) -> int:
        """How many neighbors are asked of so many entries."""
        return self.k + self._steps(entries) * (self.k // 8)

    def until_more(self, entries: int) -> int:
        """How many entries may come until more neighbors are asked."""
        if self.large is None:
            return sys.maxsize
        return (self.large << self._steps(entries)) - entries

    def _steps(self, entries: int) -> int:
        return 0 if self.large is None else (entries // self.large).bit_length()


@final
class Cache(Expert):
    """Kernel density estimate over a datastore of (hidden state, next word) pairs (eq. 6).

    With the last N pairs it is the local cache, with all pairs the unbounded cache. An empty one
    is even over `size` words. Without a `kernel` there is a family of them, and how far to trust
    each is learned from the words that some neighbor foresaw. A `k` that is not told grows with
    the datastore.
    """

    def __init__(
        self,
        datastore: Datastore,
        size: int,
        *,
        k: int | Neighborhood | None = None,
        kernel: Kernel | None = None,
        normalize: bool = False,
        part: slice = slice(None),
    ) -> None:
        """`part` of a hidden state is the key."""
        self.datastore = datastore
        # The more words look into a large datastore together, the more share what they look at.
        self.wants_whole_block = datastore.window is None
        self.size = size
        self._neighborhood = k if isinstance(k, Neighborhood) else Neighborhood.of(k)
        self._votes = votes_by(kernel)
        self._trust = Online(self._votes.kernels)
        self._normalize = normalize
        self._part = part

    @property
    def k(self) -> int:
        """How many neighbors a state is asked for now."""
        return self._neighborhood.at(len(self.datastore))

    def neighbors(self, hidden: Hidden) -> Neighbors:
        """The entries nearest to each state; changes nothing."""
        return self.datastore.search(self._keys(hidden), self.k)

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the nearest states, the nearer the more."""
        return Voted(self, hidden)

    def sparse(self, hidden: Hidden) -> Sparse:
        """The same, with every neighbor at hand."""
        found = self.neighbors(hidden)
        return Sparse(found.words, self._trusted.weights(found.squared), self.size)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The same of one word a state, with votes counted where neighbors are found."""
        if not len(self.datastore):
            return even(words, self.size)
        said: Probs = self.datastore.vote(self._keys(hidden), words, self.k, self._trusted)[:, 0]
        return said

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """One search of the datastore as it stood, plus the block's own past."""
        keys, shares, start = self._keys(hidden), np.empty((len(words), self._votes.kernels)), 0
        while start < len(words):
            # As many pairs at a time as are asked for the same number of neighbors.
            rows = slice(start, start + self._neighborhood.until_more(len(self.datastore)))
            shares[rows] = self.datastore.score(keys[rows], words[rows], self.k, self._votes)
            start = rows.stop
        alone = np.isnan(shares[:, 0])
        shares[alone] = even(words[alone], self.size)[:, None]
        probs = np.zeros(len(words))
        # What no neighbor foresaw says nothing about the kernels.
        foreseen = shares.any(axis=1)
        probs[foreseen] = self._trust.score(shares[foreseen]).prob
        return probs

    def prefetch(self, hidden: Hidden) -> None:
        """These states will be scored next, perhaps with more behind them; changes nothing."""
        if isinstance(self.datastore, Remote):
            self.datastore.prefetch(self._keys(hidden), self.k)

    def recall(self, hidden: Hidden) -> tuple[Neighbors, Distances]:
        """The entries that `predict` asks for one state, and the share of each in what it says."""
        found = self.neighbors(hidden)
        weights = self._trusted.weights(found.squared)
        totals = weights.sum(axis=1, keepdims=True)
        return found, weights / np.where(totals > 0, totals, 1)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The datastore's, and the trust in each kernel."""
        return {**self.datastore.state(since), **under("trust", self._trust.state())}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts."""
        self.datastore.load(parts)
        self._trust.load([part("trust", parts[-1])])

    @property
    def _trusted(self) -> Votes:
        """How neighbors vote when each kernel is trusted as it is now."""
        return replace(self._votes, trust=self._trust.weights)

    def _keys(self, hidden: Hidden) -> Float[np.ndarray, "n key"]:
        keys = np.ascontiguousarray(hidden[:, self._part])
        return unit_length(keys) if self._normalize else keys


@final
class Voted(Distribution):
    """What the neighbors of each state vote for; to be asked before the cache reads on."""

    def __init__(self, cache: Cache, hidden: Hidden) -> None:
        self._cache = cache
        self._hidden = hidden

    def prob(self, words: Ids) -> Probs:
        """The share of votes for one word a step."""
        return self._cache.prob(self._hidden, words)

    def dense(self, size: int) -> Dense:
        """The share of votes for every word."""
        return self._cache.sparse(self._hidden).dense(size)


def unit_length(hidden: Hidden) -> Hidden:
    """States scaled to length one; a state of nothing stays as it is."""
    norms = np.sqrt((hidden * hidden).sum(axis=1, keepdims=True))
    unit: Hidden = hidden / np.where(norms > 0, norms, 1)
    return unit
