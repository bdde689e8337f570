"""Counts of what followed the last words, from everything read: a back-off n-gram that learns."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded import _native
from unbounded.experts.distribution import Dense, Distribution
from unbounded.experts.expert import Expert, Uniform
from unbounded.experts.tree import NONE, NOWHERE, PARENT, REPEATS, TOTALS, WORD, Tables, with_counts
from unbounded.growable_array import GrowableArray
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs

ORDERS = 5
"""The longest n-gram: contexts are the last 0, 1, …, 4 words."""

CHUNK = 4096
"""Words counted between two looks at whether there is room for more."""


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

    Each word adds at most five nodes, in practice two or three, of 20 bytes each with its chain;
    one in ten came again and takes 16 more.

    >>> ngram = NGram(size=10)
    >>> words = np.array([1, 2, 3, 4] * 3)
    >>> ngram.score(np.zeros((12, 1)), words).round(2).tolist()[3::4]
    [0.03, 0.98, 1.0]
    """

    def __init__(self, size: int, *, open: bool = False) -> None:
        self._uniform = Uniform(size)
        self._open = open
        self._used = 1  # node 0 is the empty context
        self._rows = 1  # and has the first row of counts
        self._nodes = np.array([[0, 0, 0, NONE - 1]], np.int32)
        self._counts = np.zeros((1, 4), np.int32)
        self._heads = _native.ngram_chain(self._nodes)
        self._room: tuple[GrowableArray, GrowableArray, GrowableArray] | None = None
        self._contexts = np.full(ORDERS, NOWHERE, np.int64)
        self._contexts[0] = 0
        self._learned = np.ones((ORDERS * TOTALS * REPEATS, 3))

    @property
    def bytes(self) -> int:
        """Of the nodes, their chains and their counts, with the room to grow."""
        return int(self._nodes.nbytes + self._heads.nbytes + self._counts.nbytes)

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the words read last; they are the same whatever the hidden state."""
        tables = self._tables(self._contexts.copy())
        return Backed(len(hidden), self._uniform.size, tables, _native.ngram_weigh(tables))

    @property
    def context(self) -> Ids:
        """The words read last, oldest first: as many as were met together before, at most four."""
        node = next((n for n in self._contexts[::-1].tolist() if n != NOWHERE), 0)
        words: list[int] = []
        while node:
            words.append(int(self._nodes[node, WORD]))
            node = int(self._nodes[node, PARENT])
        return np.array(words[::-1], np.int64)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Count."""
        self.score(hidden, words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Ask, look, count, word by word."""
        if not self._open:
            self._uniform.observe(hidden, words)
        probs = np.empty(len(words))
        for start in range(0, len(words), CHUNK):
            chunk = np.ascontiguousarray(words[start : start + CHUNK], np.int64)
            self._reserve(ORDERS * len(chunk))
            self._used, self._rows = _native.ngram_read(
                chunk,
                self._uniform.size,
                self._tables(self._contexts),
                probs[start : start + CHUNK],
            )
        return probs

    def peek(self, hidden: Hidden, words: Ids) -> tuple[Probs, Expert]:
        """Ask, look, go on, word by word; the twin shares all that was counted."""
        fork = NGram(1)
        fork.__dict__ |= self.__dict__ | {"_contexts": self._contexts.copy()}
        tables = self._tables(fork._contexts)
        ids = np.ascontiguousarray(words, np.int64)
        return _native.ngram_walk(ids, self._uniform.size, tables), fork

    def grow_vocabulary(self, size: int) -> None:
        """Behind the last context lie that many words."""
        self._uniform.grow_vocabulary(size)

    def state(self) -> dict[str, np.ndarray]:
        """Nodes, chains and counts, where the text stands, and how contexts are weighed."""
        return {
            "nodes": self._nodes[: self._used].copy(),
            "heads": self._heads[: self._used].copy(),
            "counts": self._counts[: self._rows].copy(),
            "contexts": self._contexts.copy(),
            "learned": self._learned.copy(),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        if "counts" in state:
            self._nodes, self._heads, self._counts = (
                np.require(state[name], requirements=["C", "W"])
                for name in ("nodes", "heads", "counts")
            )
        elif "heads" in state:
            # As it was written while every node had its counts.
            self._nodes, self._counts = with_counts(state["nodes"])
            self._heads = np.require(state["heads"], requirements=["C", "W"])
        else:
            # And before that: without chains, with room behind the nodes in use.
            nodes = state["nodes"][: int(state["used"][0])]
            self._nodes, self._counts = with_counts(np.pad(nodes, ((0, 0), (0, 1))))
            self._heads = _native.ngram_chain(self._nodes)
        _native.ngram_check(self._heads, self._nodes, self._counts)
        self._used, self._rows, self._room = len(self._heads), len(self._counts), None
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

    def _tables(self, contexts: Ids) -> Tables:
        arrays = self._heads, self._nodes, self._counts, contexts, self._learned
        return *arrays, self._used, self._rows

    def _reserve(self, nodes: int) -> None:
        """Room for so many nodes more; each brings counts to at most itself and its context."""
        used, rows = self._used + nodes, self._rows + 2 * nodes
        if used > len(self._nodes) or rows > len(self._counts):
            if self._room is None:
                self._room = (
                    GrowableArray(self._nodes),
                    GrowableArray(self._heads),
                    GrowableArray(self._counts),
                )
            for_nodes, for_heads, for_counts = self._room
            self._nodes, self._heads = for_nodes.first(used), for_heads.first(used)
            self._counts = for_counts.first(rows)


@final
class Backed(Distribution):
    """What a chain of contexts says, each backing off to the next shorter; alike at every step."""

    def __init__(
        self, steps: int, size: int, tables: Tables, weights: Float[np.ndarray, "orders 6"]
    ) -> None:
        self._steps = steps
        self._size = size
        self._tables = tables
        self._weights = weights

    def prob(self, words: Ids) -> Probs:
        """The chain's probability of one word a step."""
        ids = np.ascontiguousarray(words, np.int64)
        return _native.ngram_ask(ids, self._size, self._tables, self._weights)

    def dense(self, size: int) -> Dense:
        """The chain's probability of every word."""
        return np.tile(self.prob(np.arange(size)), (self._steps, 1))
