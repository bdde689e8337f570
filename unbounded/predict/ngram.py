"""Counts of what followed the last words, from everything read: a back-off n-gram that learns."""

from collections.abc import Mapping
from typing import final

import numpy as np
from jaxtyping import Float, Int

from unbounded.predict.distribution import Dense, Distribution, Even
from unbounded.predict.experts import Expert, Uniform
from unbounded.predict.tree import NOWHERE, REPEATS, TOTALS, ask, place, read, walk, weigh
from unbounded.types import Hidden, Ids, Probs

ORDERS = 5
"""The longest n-gram: contexts are the last 0, 1, …, 4 words."""

CHUNK = 4096
"""Words counted between two looks at whether the tables must grow."""


@final
class NGram(Expert):
    """What followed the last four words, or fewer, wherever they were read before.

    Each context says: the counted followers, discounted; or the one that followed last; or ask the
    context one word shorter; at the end, even over `size` words. How to weigh the three is learned
    as it reads (online EM), for each length and kind of context. A shorter context counts a word
    only when the longer one had not seen it, so that "francisco" is as likely as the number of
    words it followed (Kneser and Ney, 1995; in compression, update exclusion).

    An `open` vocabulary has more words than the `size` that are known beforehand: they have nothing
    until they are read, and their first time teaches no weights; otherwise they are an error.

    Each word adds at most five nodes, in practice about three, of 32 bytes each with their share of
    the table, twice that where the arrays have just doubled.

    >>> ngram = NGram(size=10)
    >>> words = np.array([1, 2, 3, 4] * 3)
    >>> ngram.score(np.zeros((12, 1)), words).round(2).tolist()[3::4]
    [0.03, 0.98, 1.0]
    """

    def __init__(self, size: int, *, open: bool = False) -> None:
        self._uniform = Uniform(size)
        self._open = open
        self._nodes = np.zeros((1024, 6), np.int32)
        self._used = 1  # node 0 is the empty context
        self._slots = place(self._nodes, self._used)
        self._contexts = np.full(ORDERS, NOWHERE, np.int64)
        self._contexts[0] = 0
        self._learned = np.ones((ORDERS * TOTALS * REPEATS, 3))

    @property
    def bytes(self) -> int:
        """Of the nodes and their table, with the room to grow."""
        return int(self._nodes.nbytes + self._slots.nbytes)

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the words read last; they are the same whatever the hidden state."""
        weights = np.empty((ORDERS, 5))
        weigh(self._nodes, self._learned, self._contexts, weights)
        return Backed(
            len(hidden),
            self._uniform.size,
            self._slots,
            self._nodes,
            self._contexts.copy(),
            weights,
        )

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Count."""
        self.score(hidden, words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Ask, look, count, word by word."""
        if not self._open:
            self._uniform.observe(hidden, words)
        probs = np.empty(len(words))
        for start in range(0, len(words), CHUNK):
            chunk = np.asarray(words[start : start + CHUNK], np.int64)
            self._reserve(self._used + ORDERS * len(chunk))
            self._used = read(
                chunk,
                self._uniform.size,
                self._slots,
                self._nodes,
                self._used,
                self._contexts,
                self._learned,
                probs[start : start + CHUNK],
            )
        return probs

    def ahead(self, hidden: Hidden, words: Ids) -> tuple[Probs, Expert]:
        """Ask, look, go on, word by word; the twin shares all that was counted."""
        twin = NGram(1)
        twin.__dict__ |= self.__dict__ | {"_contexts": self._contexts.copy()}
        base = Even(len(words), self._uniform.size).prob(words)
        tables = (self._slots, self._nodes, twin._contexts, self._learned)
        probs: Probs = walk(np.asarray(words, np.int64), base, *tables)
        return probs, twin

    def widen(self, size: int) -> None:
        """Behind the last context lie that many words."""
        self._uniform.widen(size)

    def state(self) -> dict[str, np.ndarray]:
        """The nodes and the table, where the text stands, and how contexts are weighed.

        Room for growth is among them: to find a place for each of ten million nodes again would
        take seconds.
        """
        return {
            "nodes": self._nodes.copy(),
            "used": np.array([self._used]),
            "slots": self._slots.copy(),
            "contexts": self._contexts.copy(),
            "learned": self._learned.copy(),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._nodes = np.require(state["nodes"], requirements=["C", "W"])
        self._used = int(state["used"][0])
        self._slots = np.require(state["slots"], requirements=["C", "W"])
        self._contexts = state["contexts"].copy()
        self._learned = state["learned"].copy()

    def rest(self) -> dict[str, np.ndarray]:
        """Nothing: all of it is had from the words."""
        return {}

    def again(self, words: Ids) -> None:
        """Count."""
        self.score(np.empty((len(words), 0), np.float32), words)

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Nothing."""

    def _reserve(self, nodes: int) -> None:
        if nodes > len(self._nodes):
            # A power of two, so that growth is linear over all and the table's mask is one less.
            grown = np.zeros((1 << (nodes - 1).bit_length(), 6), np.int32)
            grown[: self._used] = self._nodes[: self._used]
            self._nodes = grown
            self._slots = place(grown, self._used)


@final
class Backed(Distribution):
    """What a chain of contexts says, each backing off to the next shorter; alike at every step."""

    def __init__(
        self,
        steps: int,
        size: int,
        slots: Int[np.ndarray, " slots"],
        nodes: Int[np.ndarray, "nodes 6"],
        contexts: Int[np.ndarray, " orders"],
        weights: Float[np.ndarray, "orders 5"],
    ) -> None:
        self._steps = steps
        self._size = size
        self._tables = (slots, nodes, contexts, weights)

    def prob(self, words: Ids) -> Probs:
        """The chain's probability of one word a step."""
        base = Even(len(words), self._size).prob(words)
        out: Probs = ask(np.asarray(words, np.int64), base, *self._tables)
        return out

    def dense(self, size: int) -> Dense:
        """The chain's probability of every word."""
        return np.tile(self.prob(np.arange(size)), (self._steps, 1))
