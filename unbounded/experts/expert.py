"""Experts: each turns what it has read into a distribution over the next word.

Two verbs and one law: `predict` asks and changes nothing, `observe` teaches, and `score`, the
fast path over a block, must equal `stepwise`: predict one word, look at it, learn it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.datastore import Datastore, Neighbors
from unbounded.errors import SettingError
from unbounded.experts.distribution import Counted, Distribution, Even, Networked, Sparse
from unbounded.experts.family import family
from unbounded.experts.kernels import Kernel
from unbounded.experts.neighborhood import Neighborhood
from unbounded.lm import LanguageModel
from unbounded.mixture.mixture import Online
from unbounded.shapes import Float
from unbounded.states import part, under
from unbounded.types import Distances, Hidden, Ids, Probs


class Expert(ABC):
    """One opinion about the next word, learned by reading."""

    wants_whole_block = False
    """Whether a block is best scored in one, however long: the law has it that any cut will do."""

    @abstractmethod
    def predict(self, hidden: Hidden) -> Distribution:
        """What would come after each hidden state, from all that was observed; changes nothing."""

    @abstractmethod
    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Learn that each word came after its hidden state."""

    @abstractmethod
    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """What each word's probability was just before it came; and learn them all."""

    def prefetch(self, hidden: Hidden) -> None:  # noqa: B027 - most have nothing to do
        """These states will be scored next, perhaps with more behind them; changes nothing."""

    def peek(self, hidden: Hidden, words: Ids) -> tuple[Probs, "Expert"]:
        """Each word's probability if none of them taught anything, and who to ask what is next.

        Changes nothing. Words may be OOV words, with ids beyond the vocabulary.
        """
        return self.predict(hidden).prob(words), self

    def grow_vocabulary(self, size: int) -> None:  # noqa: B027 - most have nothing to do
        """Have that many words in the full vocabulary from now on, more than before."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """All that was learned, as arrays."""

    @abstractmethod
    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state, whose arrays may be kept and changed."""

    # What has come since the last time and the rest, which is small: enough to go on from an
    # earlier state without being asked about a single word. By default all is rest.

    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come since this was last called; None if it is not known, as the first time."""
        return {}

    def rest(self) -> dict[str, np.ndarray]:
        """All that is neither growth nor to be had from the words alone."""
        return self.state()

    def again(self, words: Ids) -> None:  # noqa: B027 - most have nothing to do
        """Take in a block that was read before, as far as the words alone say; then `grow`."""

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:  # noqa: B027
        """Add what has come; `settle` before asking."""

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""
        self.load(rest)


def stepwise(expert: Expert, hidden: Hidden, words: Ids) -> Probs:
    """The definition of `score`: one word at a time."""
    probs = np.empty(len(words))
    for t in range(len(words)):
        now = slice(t, t + 1)
        probs[t] = expert.predict(hidden[now]).prob(words[now])[0]
        expert.observe(hidden[now], words[now])
    return probs


@final
class Static(Expert):
    """The frozen network, which learns nothing."""

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm

    def predict(self, hidden: Hidden) -> Distribution:
        """What the network says."""
        return Networked(self._lm, hidden)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Nothing: the network is frozen."""

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """The network's probabilities."""
        return self._lm.prob(hidden, words)

    def state(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Nothing."""


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
        return Even(len(hidden), self.size)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Nothing but a check: a word beyond the full vocabulary would have probability zero."""
        if len(words) and words.max() >= self.size:
            raise SettingError(
                f"word number {int(words.max()) + 1:,} came, but the full vocabulary was said to "
                f"have {self.size:,}; count the words of the text first"
            )

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """1 / size."""
        self.observe(hidden, words)
        return Even(len(hidden), self.size).prob(words)

    def grow_vocabulary(self, size: int) -> None:
        """1 / size of the new one."""
        self.size = size

    def state(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Nothing."""


@final
class Unigram(Expert):
    """How often each word was read so far; even over `size` words before the first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts = np.zeros(0, np.int64)
        self._total = 0

    def predict(self, hidden: Hidden) -> Distribution:
        """Count over total."""
        return Counted(len(hidden), self._counts, self._size)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Count."""
        if len(words):
            self._reach(int(words.max()) + 1)
            self._counts += np.bincount(words, minlength=len(self._counts))
            self._total += len(words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Counts before the block plus how often the word came earlier in the block."""
        if len(words) == 0:
            return np.empty(0)
        self._reach(int(words.max()) + 1)
        seen = self._counts[words] + _earlier(words)
        totals = self._total + np.arange(len(words))
        probs: Probs = seen / np.maximum(totals, 1)
        if self._total == 0:
            probs[0] = Even(1, self._size).prob(words[:1])[0]
        self.observe(hidden, words)
        return probs

    def grow_vocabulary(self, size: int) -> None:
        """It matters before the first word only."""
        self._size = size

    def state(self) -> dict[str, np.ndarray]:
        """The counts."""
        return {"counts": self._counts.copy()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._counts = state["counts"].copy()
        self._total = int(self._counts.sum())

    def rest(self) -> dict[str, np.ndarray]:
        """Nothing: counts are had from the words."""
        return {}

    def again(self, words: Ids) -> None:
        """Count."""
        if len(words):
            self._reach(int(words.max()) + 1)
            np.add.at(self._counts, words, 1)
            self._total += len(words)

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Nothing."""

    def _reach(self, size: int) -> None:
        if size > len(self._counts):
            # Doubling keeps growth by one word at a time linear over all.
            grown = np.zeros(max(size, 2 * len(self._counts)), np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown


@final
class Cache(Expert):
    """Kernel density estimate over a memory of (hidden state, next word) pairs (eq. 6).

    With a memory of the last N pairs it is the local cache, with one of all pairs the unbounded
    cache. An empty memory is even over `size` words. Without a `kernel` there is a family of them,
    and how far to trust each is learned from the words that some neighbor foresaw. A `k` that is
    not told grows with the memory.
    """

    def __init__(
        self,
        memory: Datastore,
        size: int,
        *,
        k: int | Neighborhood | None = None,
        kernel: Kernel | None = None,
        normalize: bool = False,
        part: slice = slice(None),
    ) -> None:
        """`part` of a hidden state is the key."""
        self.memory = memory
        # The more words look into a large memory together, the more share what they look at.
        self.wants_whole_block = memory.window is None
        self._size = size
        self._neighborhood = k if isinstance(k, Neighborhood) else Neighborhood.of(k)
        self._votes = family(kernel)
        self._trust = Online(self._votes.kernels)
        self._normalize = normalize
        self._part = part

    @property
    def k(self) -> int:
        """How many neighbors a state is asked for now."""
        return self._neighborhood.at(len(self.memory))

    def neighbors(self, hidden: Hidden) -> Neighbors:
        """The entries nearest to each state; changes nothing."""
        return self.memory.search(self._keys(hidden), self.k)

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the nearest states, the nearer the more."""
        found = self.neighbors(hidden)
        weights = self._votes.weights(found.squared, self._trust.weights)
        return Sparse(found.words, weights, self._size)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Remember each pair, and learn which kernel foresaw it."""
        self.score(hidden, words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """One search of the memory as it stood, plus the block's own past."""
        keys, shares, start = self._keys(hidden), np.empty((len(words), self._votes.kernels)), 0
        while start < len(words):
            # As many pairs at a time as are asked for the same number of neighbors.
            rows = slice(start, start + self._neighborhood.until_more(len(self.memory)))
            shares[rows] = self.memory.score(keys[rows], words[rows], self.k, self._votes)
            start = rows.stop
        alone = np.isnan(shares[:, 0])
        shares[alone] = Even(1, self._size).prob(words[alone])[:, None]
        probs = np.zeros(len(words))
        # What no neighbor foresaw says nothing about the kernels.
        foreseen = shares.any(axis=1)
        probs[foreseen] = self._trust.score(shares[foreseen]).prob
        return probs

    def prefetch(self, hidden: Hidden) -> None:
        """Let a memory that lies elsewhere begin to search."""
        self.memory.prefetch(self._keys(hidden), self.k)

    def remember(self, hidden: Hidden, words: Ids) -> None:
        """Remember pairs without looking for their neighbors: nothing is learned of the kernels."""
        self.memory.add(self._keys(hidden), words)

    def recall(self, hidden: Hidden) -> tuple[Neighbors, Distances]:
        """The entries that `predict` asks for one state, and the share of each in what it says."""
        found = self.neighbors(hidden)
        weights = self._votes.weights(found.squared, self._trust.weights)
        totals = weights.sum(axis=1, keepdims=True)
        return found, weights / np.where(totals > 0, totals, 1)

    def grow_vocabulary(self, size: int) -> None:
        """It matters while the memory is empty only."""
        self._size = size

    def state(self) -> dict[str, np.ndarray]:
        """The memory's, and the trust in each kernel."""
        return {**self.memory.state(), **under("trust", self._trust.state())}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self.memory.load(state)
        self._trust.load(part("trust", state))

    def growth(self) -> dict[str, np.ndarray] | None:
        """The memory's."""
        return self.memory.growth()

    def rest(self) -> dict[str, np.ndarray]:
        """The rest of the memory, and the trust in each kernel."""
        return {**self.memory.rest(), **under("trust", self._trust.state())}

    def again(self, words: Ids) -> None:
        """The memory's words."""
        self.memory.again(words)

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add to the memory."""
        self.memory.grow(growth)

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""
        self.memory.settle(rest)
        self._trust.load(part("trust", rest))

    def _keys(self, hidden: Hidden) -> Float[np.ndarray, "n key"]:
        keys = np.ascontiguousarray(hidden[:, self._part])
        return unit_length(keys) if self._normalize else keys


def unit_length(hidden: Hidden) -> Hidden:
    """States scaled to length one; a state of nothing stays as it is."""
    norms = np.linalg.norm(hidden, axis=1, keepdims=True)
    unit: Hidden = hidden / np.where(norms > 0, norms, 1)
    return unit


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
