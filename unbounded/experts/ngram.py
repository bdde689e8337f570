"""Counts of what followed the last words, from everything read: a back-off n-gram that learns."""

from collections.abc import Sequence
from copy import copy
from typing import final

import numpy as np

from unbounded import _native
from unbounded.experts.counts import check_inside
from unbounded.experts.distribution import Alike, Distribution
from unbounded.experts.expert import Expert, replay
from unbounded.growable_array import GrowableArray
from unbounded.shapes import Int, Int32
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids, Probs

ORDERS = 5
"""The longest n-gram: contexts are the last 0, 1, …, 4 words."""

CHUNK = 4096
"""Words counted between two looks at whether there is room for more."""

# The arrays of the tree of n-grams, which `native/ngram.h` reads and fills. Most n-grams come once,
# and as contexts have one follower or none, so that there is nothing to count (of those of ten
# million words of web, nine in ten). Only the others have counts, in an array of their own.

DISCOUNT = 0.7
"""Taken from every count, so that what was seen once or twice is trusted less (Kneser-Ney)."""

TOTALS, REPEATS = 25, 6
"""Contexts are told apart by how often they were met and how often their next word was a repeat."""

PARENT, WORD, NEXT, LAST = range(4)
"""A node, 16 bytes: the n-gram `word` after `parent`, the next node in its chain (0: none), and
what followed the n-gram last: a word, `NONE`, or below that the number of its row of counts.

Where a text was read beforehand, what is read since is counted apart too: a view of its own, whose
`LAST` comes first, `ABSENT` where the n-gram has not come since."""

NONE, ABSENT = -1, -(2**31)

COUNT, TOTAL, DISTINCT, FOLLOWER = range(4)
"""A row of counts, 16 bytes: how often the n-gram came, the sum and number of its followers'
counts, its last follower."""

NOWHERE = -1

TRUST = 10.0
"""How much what a text that was read beforehand taught of its contexts weighs, in words, for those
that have come since: few, or a text unlike it is not believed (docs/log.md)."""

Tables = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int]
"""Heads of chains, nodes, counts, contexts and how they are weighed; nodes and counts in use."""


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

    Each word adds at most six nodes, in practice two, of 20 bytes each with its chain; one in ten
    came again and takes 16 more. What came once after four words has no node. After a text that was
    read beforehand, `counted_apart`, each context says two things: what followed since, and on top
    of that what followed at all.

    >>> ngram = NGram(size=10)
    >>> words = np.array([1, 2, 3, 4] * 3)
    >>> ngram.score(np.zeros((12, 1)), words).round(2).tolist()[3::4]
    [0.03, 0.98, 1.0]
    """

    def __init__(self, size: int, *, open: bool = False, base: Arrays | None = None) -> None:
        """With a `base`, the state of one that has read a text, it goes on from there.

        All that is learned later then follows from the words that were read, and is not told again.
        """
        self.size = size
        self._open = open
        self._room: list[GrowableArray] | None = None
        self.follows = base is not None
        """Whether its state follows from the words that were read."""
        self._restore(_empty() if base is None else base)

    @property
    def bytes(self) -> int:
        """Of the nodes, their chains and their counts, with the room to grow."""
        return int(self._nodes.nbytes + self._heads.nbytes + self._counts.nbytes)

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the words read last; they are the same whatever the hidden state."""
        tables, size = self._tables(self._contexts.copy()), self.size
        weights = _native.ngram_weigh(tables)

        def ask(words: Ids) -> Probs:
            ids = np.ascontiguousarray(words, np.int64)
            return _native.ngram_ask(ids, size, tables, weights)

        return Alike(len(hidden), ask)

    @property
    def context(self) -> Ids:
        """The words read last, oldest first: as many as were met together before, at most four."""
        node = next((n for n in self._contexts[-1, ::-1].tolist() if n != NOWHERE), 0)
        words: list[int] = []
        while node:
            words.append(int(self._nodes[node, WORD]))
            node = int(self._nodes[node, PARENT])
        return np.array(words[::-1], np.int64)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Ask, look, count, word by word."""
        if not self._open:
            check_inside(words, self.size)
        probs = np.empty(len(words))
        for start in range(0, len(words), CHUNK):
            chunk = np.ascontiguousarray(words[start : start + CHUNK], np.int64)
            self._reserve((ORDERS + 1) * len(chunk))
            self._used, self._rows = _native.ngram_read(
                chunk,
                self.size,
                self._tables(self._contexts),
                probs[start : start + CHUNK],
            )
        return probs

    def peek(self, words: Ids) -> tuple[Probs, "NGram"]:
        """Each word's probability if none of them taught anything, and what stands behind them.

        That one shares all that was counted. Words may be OOV words, beyond the vocabulary.
        """
        fork = copy(self)
        fork._contexts = self._contexts.copy()
        tables = self._tables(fork._contexts)
        ids = np.ascontiguousarray(words, np.int64)
        return _native.ngram_walk(ids, self.size, tables), fork

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Nodes, chains and counts, where the text stands, and how contexts are weighed.

        The words tell all of it again.
        """
        if since is not None or self.follows:
            return {}
        return {
            "nodes": self._nodes[: self._used].copy(),
            "heads": self._heads[: self._used].copy(),
            "counts": self._counts[: self._rows].copy(),
            # The only view; two follow from the words.
            "contexts": self._contexts[0].copy(),
            "learned": self._learned.copy(),
        }

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the first part, and count the words of the others."""
        if not self.follows:
            self._restore(parts[0])
            parts = parts[1:]
        for each in parts:
            replay(self, each)

    def _restore(self, state: Arrays) -> None:
        if "counts" in state:
            self._nodes, self._heads, self._counts = (
                np.require(state[name], requirements=["C", "W"])
                for name in ("nodes", "heads", "counts")
            )
        elif "heads" in state:
            # As it was written while every node had its counts.
            self._nodes, self._counts = _with_counts(state["nodes"])
            self._heads = np.require(state["heads"], requirements=["C", "W"])
        else:
            # And before that: without chains, with room behind the nodes in use.
            nodes = state["nodes"][: int(state["used"][0])]
            self._nodes, self._counts = _with_counts(np.pad(nodes, ((0, 0), (0, 1))))
            self._heads = _native.ngram_chain(self._nodes)
        _native.ngram_check(self._heads, self._nodes, self._counts)
        self._used, self._rows, self._room = len(self._heads), len(self._counts), None
        views = self._nodes.shape[1] - LAST
        self._contexts: np.ndarray = state["contexts"].reshape(views, -1).copy()
        self._learned = state["learned"].copy()

    def _tables(self, contexts: Int[np.ndarray, "views orders"]) -> Tables:
        arrays = self._heads, self._nodes, self._counts, contexts, self._learned
        return *arrays, self._used, self._rows

    def _reserve(self, nodes: int) -> None:
        """Room for so many nodes more; each brings counts to at most itself and its context."""
        used, rows = self._used + nodes, self._rows + 2 * nodes * len(self._contexts)
        if used > len(self._nodes) or rows > len(self._counts):
            if self._room is None:
                arrays = self._nodes, self._heads, self._counts
                self._room = [GrowableArray(each, spare=32, reserve=True) for each in arrays]
            for_nodes, for_heads, for_counts = self._room
            self._nodes, self._heads = for_nodes.resized(used), for_heads.resized(used)
            self._counts = for_counts.resized(rows)


def counted_apart(state: Arrays) -> dict[str, np.ndarray]:
    """The state of one that has read a text, such that what it reads since is counted apart too."""
    nodes, none = np.insert(state["nodes"], LAST, ABSENT, axis=1), _empty()
    learned = state["learned"]
    met = learned.sum(axis=1, keepdims=True)
    nodes[0, LAST] = NONE - 1 - len(state["counts"])
    return {
        "nodes": nodes,
        "heads": state["heads"],
        "counts": np.concatenate([state["counts"], none["counts"]]),
        "contexts": np.stack([none["contexts"], state["contexts"]]),
        "learned": np.concatenate([none["learned"], learned, learned * np.minimum(TRUST / met, 1)]),
    }


def _empty() -> dict[str, np.ndarray]:
    """Node 0, the empty context, with the first row of counts."""
    return {
        "nodes": np.array([[0, 0, 0, NONE - 1]], np.int32),
        "heads": np.zeros(1, np.int32),
        "counts": np.zeros((1, 4), np.int32),
        "contexts": np.array([0, *[NOWHERE] * (ORDERS - 1)], np.int64),
        "learned": np.ones((ORDERS * TOTALS * REPEATS, 3)),
    }


def _with_counts(
    nodes: Int32[np.ndarray, "n 7"],
) -> tuple[Int32[np.ndarray, "n 4"], Int32[np.ndarray, "rows 4"]]:
    """Nodes and rows of counts, from nodes of parent, word, count, total, distinct, follower, next:
    as they were written while each had all of them."""
    counts = nodes[:, 2:6]
    # The empty context has a row from the beginning, the first.
    often = (counts[:, COUNT] != 1) | (counts[:, TOTAL] > 1)
    last = np.where(counts[:, TOTAL] > 0, counts[:, FOLLOWER], NONE)
    last[often] = NONE - 1 - np.arange(often.sum())
    return np.column_stack([nodes[:, :2], nodes[:, 6], last]), counts[often].copy()
