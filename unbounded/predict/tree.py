"""N-grams as a tree in arrays: a node is a context and a word after it.

A node's key is exact (its parent's number and its word), so nothing collides, and the nodes that a
word makes or meets are the contexts of the next word, so nothing is hashed twice. There are as many
chains as nodes: each node that comes brings one, which takes its share of an older chain's nodes
(linear hashing; Litwin, 1980), so that the table grows with its nodes and never pauses.

Most n-grams come once, and as contexts have one follower or none, so that there is nothing to count
(of those of ten million words of web, nine in ten). Only the others have counts, in an array of
their own.
"""

from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Int32

DISCOUNT = 0.7
"""Taken from every count, so that what was seen once or twice is trusted less (Kneser-Ney)."""

TOTALS, REPEATS = 25, 6
"""Contexts are told apart by how often they were met and how often their next word was a repeat."""

PARENT, WORD, NEXT, LAST = range(4)
"""A node, 16 bytes: the n-gram `word` after `parent`, the next node in its chain (0: none), and
what followed the n-gram last: a word, `NONE`, or below that the number of its row of counts."""

NONE = -1

WEIGHTS = 6
"""What `weigh` says of a context."""

COUNT, TOTAL, DISTINCT, FOLLOWER = range(4)
"""A row of counts, 16 bytes: how often the n-gram came, the sum and number of its followers'
counts, its last follower."""

NOWHERE = -1


@numba.njit(cache=True, nogil=True)
@no_type_check
def mask_for(chains):
    """The bits that tell so many chains apart."""
    mask = 0
    while mask < chains - 1:
        mask = 2 * mask + 1
    return mask


@numba.njit(cache=True, nogil=True)
@no_type_check
def _chain(parent, word, chains, mask):
    """The chain that a node is in."""
    key = (np.uint64(parent) << np.uint64(32)) | np.uint64(word)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    at = np.int64((key ^ (key >> np.uint64(31))) & np.uint64(mask))
    # A chain that has not come yet is still part of an older one.
    return at if at < chains else at & (mask >> 1)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _find(heads, nodes, chains, mask, parent, word):
    """The node, or 0 if there is none."""
    node = heads[_chain(parent, word, chains, mask)]
    while node != 0 and not (nodes[node, PARENT] == parent and nodes[node, WORD] == word):
        node = nodes[node, NEXT]
    return node


@numba.njit(cache=True, nogil=True)
@no_type_check
def _add(heads, nodes, new, mask):
    """Chain a new node, for which there is one chain more; the mask for them."""
    chains = new + 1
    if new > mask:
        mask = 2 * mask + 1
    older = new & (mask >> 1)
    node, heads[older], heads[new] = heads[older], 0, 0
    while node != 0:
        following = nodes[node, NEXT]
        at = _chain(nodes[node, PARENT], nodes[node, WORD], chains, mask)
        nodes[node, NEXT], heads[at] = heads[at], node
        node = following
    at = _chain(nodes[new, PARENT], nodes[new, WORD], chains, mask)
    nodes[new, NEXT], heads[at] = heads[at], new
    return mask


@numba.njit(cache=True, nogil=True)
@no_type_check
def chained(nodes):
    """The head of each chain, for nodes that are in none; the first node is the empty context."""
    heads = np.zeros(len(nodes), np.int32)
    mask = 0
    for new in range(1, len(nodes)):
        mask = _add(heads, nodes, new, mask)
    return heads


@numba.njit(cache=True, nogil=True)
@no_type_check
def _kind(order, total, distinct):
    """Which contexts learn together."""
    met = min(int(2 * np.log2(total)), TOTALS - 1)
    repeats = (total - distinct) * REPEATS // total
    return (order * TOTALS + met) * REPEATS + repeats


@numba.njit(cache=True, nogil=True)
@no_type_check
def _row(last):
    """Which row of counts is meant, and what is written to mean it."""
    return NONE - 1 - last


@numba.njit(cache=True, nogil=True)
@no_type_check
def _counted(nodes, counts, node, rows):
    """The node's row of counts, which it gets if it had none; and how many rows there are then."""
    last = nodes[node, LAST]
    if last < NONE:
        return _row(last), rows
    followers = 0 if last == NONE else 1
    counts[rows, COUNT], counts[rows, TOTAL] = 1, followers
    counts[rows, DISTINCT], counts[rows, FOLLOWER] = followers, last
    nodes[node, LAST] = _row(rows)
    return rows, rows + 1


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


@numba.njit(cache=True, nogil=True)
@no_type_check
def weigh(nodes, counts, learned, contexts, weights):
    """For each context that was met before: weights of counts, last follower and backing off,
    what divides a count, the kind, and the last follower; how many contexts those are."""
    for order in range(len(contexts)):
        context = contexts[order]
        total, distinct, last = 0, 0, NONE
        if context != NOWHERE:
            last = nodes[context, LAST]
            if last > NONE:
                total, distinct = 1, 1
            elif last < NONE:
                row = _row(last)
                total, distinct = counts[row, TOTAL], counts[row, DISTINCT]
                last = counts[row, FOLLOWER]
        if total == 0:
            weights[order, 3] = 0.0
            return order
        kind = _kind(order, total, distinct)
        mass = learned[kind, 0] + learned[kind, 1] + learned[kind, 2]
        for part in range(3):
            weights[order, part] = learned[kind, part] / mass
        weights[order, 3] = total - DISCOUNT * distinct
        weights[order, 4] = kind
        weights[order, 5] = last
    return len(contexts)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _shares(nodes, counts, node, weights, order):
    """What a context's counts, and its last follower, give to a word that has a node."""
    last = nodes[node, LAST]
    count = 1 if last >= NONE else counts[_row(last), COUNT]
    counted = (count - DISCOUNT) / weights[order, 3] * weights[order, 0]
    return counted, weights[order, 1] if weights[order, 5] == nodes[node, WORD] else 0.0


@numba.njit(cache=True, nogil=True)
@no_type_check
def ask(words, base, heads, nodes, counts, contexts, weights):
    """The probability of each word after the same contexts."""
    out = base.copy()
    chains = len(heads)
    mask = mask_for(chains)
    for t in range(len(words)):
        known = True
        for order in range(len(contexts)):
            if weights[order, 3] == 0.0:
                break
            counted, last = 0.0, 0.0
            if known:
                node = _find(heads, nodes, chains, mask, contexts[order], words[t])
                # What a context never saw, no longer one saw.
                known = node != 0
                if known:
                    counted, last = _shares(nodes, counts, node, weights, order)
            out[t] = counted + last + weights[order, 2] * out[t]
    return out


@numba.njit(cache=True, nogil=True)
@no_type_check
def walk(words, base, heads, nodes, counts, contexts, learned):
    """Ask for each word and go on to the contexts behind it; nothing is counted."""
    out = np.empty(len(words))
    weights = np.empty((len(contexts), WEIGHTS))
    chains = len(heads)
    mask = mask_for(chains)
    for t in range(len(words)):
        weigh(nodes, counts, learned, contexts, weights)
        out[t] = ask(words[t : t + 1], base[t : t + 1], heads, nodes, counts, contexts, weights)[0]
        for order in range(len(contexts) - 2, -1, -1):
            node = 0
            if contexts[order] != NOWHERE:
                node = _find(heads, nodes, chains, mask, contexts[order], words[t])
            contexts[order + 1] = node if node != 0 else NOWHERE
    return out


@numba.njit(cache=True, nogil=True)
@no_type_check
def read(words, size, heads, nodes, counts, used, rows, contexts, learned, probs):
    """Ask, look, learn for each word; the numbers of nodes and of rows of counts then in use.

    Without any count a word has 1 / size, and one beyond `size` nothing.
    """
    orders = len(contexts)
    mask = mask_for(used)
    weights = np.empty((orders, WEIGHTS))
    found = np.empty(orders, np.int64)
    for t in range(len(words)):
        word = words[t]
        met = weigh(nodes, counts, learned, contexts, weights)
        prob = 1.0 / size if word < size else 0.0
        for order in range(met):
            counted, last = 0.0, 0.0
            found[order] = _find(heads, nodes, used, mask, contexts[order], word)
            if found[order] != 0:
                counted, last = _shares(nodes, counts, found[order], weights, order)
            shorter = weights[order, 2] * prob
            prob = counted + last + shorter
            # Each context learns as if no longer one were there. EM over the whole chain is 1 %
            # better alone, but 0.3 % worse in a mixture, which wants the sharper opinion.
            # A word that no context can foresee says nothing about them.
            kind = int(weights[order, 4])
            if prob > 0.0:
                learned[kind, 0] += counted / prob
                learned[kind, 1] += last / prob
                learned[kind, 2] += shorter / prob
        probs[t] = prob
        news = True
        for order in range(orders - 1, -1, -1):
            context = contexts[order]
            node = NOWHERE
            if context != NOWHERE:
                if order < met:
                    node = found[order]
                else:
                    node = _find(heads, nodes, used, mask, context, word)
                new = node == 0
                if new:
                    node = used
                    nodes[node, PARENT], nodes[node, WORD], nodes[node, LAST] = context, word, NONE
                    mask = _add(heads, nodes, node, mask)
                    used += 1
                if news and nodes[context, LAST] != NONE:
                    row, rows = _counted(nodes, counts, context, rows)
                    counts[row, TOTAL] += 1
                    counts[row, DISTINCT] += new
                if nodes[context, LAST] < NONE:
                    counts[_row(nodes[context, LAST]), FOLLOWER] = word
                else:
                    # Its first follower, or again the only one.
                    nodes[context, LAST] = word
                if news and not new:
                    row, rows = _counted(nodes, counts, node, rows)
                    counts[row, COUNT] += 1
                    # A shorter context counts what the longer ones had not seen.
                    news = False
            if order + 1 < orders:
                contexts[order + 1] = node
        contexts[0] = 0
    return used, rows
