"""The arrays of a tree of n-grams, which `native/ngram.h` reads and fills.

Most n-grams come once, and as contexts have one follower or none, so that there is nothing to count
(of those of ten million words of web, nine in ten). Only the others have counts, in an array of
their own.
"""

import numpy as np

from unbounded.shapes import Int32

DISCOUNT = 0.7
"""Taken from every count, so that what was seen once or twice is trusted less (Kneser-Ney)."""

TOTALS, REPEATS = 25, 6
"""Contexts are told apart by how often they were met and how often their next word was a repeat."""

PARENT, WORD, NEXT, LAST = range(4)
"""A node, 16 bytes: the n-gram `word` after `parent`, the next node in its chain (0: none), and
what followed the n-gram last: a word, `NONE`, or below that the number of its row of counts."""

NONE = -1

COUNT, TOTAL, DISTINCT, FOLLOWER = range(4)
"""A row of counts, 16 bytes: how often the n-gram came, the sum and number of its followers'
counts, its last follower."""

NOWHERE = -1

Tables = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int]
"""Heads of chains, nodes, counts, contexts and how they are weighed; nodes and counts in use."""


def with_counts(
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
