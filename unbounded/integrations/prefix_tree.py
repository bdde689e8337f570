"""Texts that begin alike, scored together: each different beginning is asked for once."""

from collections.abc import Sequence
from typing import final

import numpy as np

from unbounded.experts import NGram
from unbounded.model import OnlineModel
from unbounded.types import Hidden, Ids

ROWS = 1024
"""Nodes that are asked for at once: what the softmax says of more would take much room."""


def tree_probs(online: OnlineModel, paths: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What `online.peek` gives each path's words; beginnings that paths share are asked once."""
    tree = _Tree(online, paths)
    table = np.empty((len(tree.ids), len(online.experts)))
    for start in range(0, len(table), ROWS):
        some = slice(start, start + ROWS)
        for column, expert in enumerate(online.experts.values()):
            # To these alone the words tell where the text stands.
            if not isinstance(expert, NGram):
                table[some, column] = expert.predict(tree.hidden[some]).prob(tree.ids[some])
    for column, expert in enumerate(online.experts.values()):
        if isinstance(expert, NGram):
            for path, nodes in zip(paths, tree.paths, strict=True):
                table[nodes, column] = expert.peek(path)[0]
    return [online.mixture.fork().score(table[at], tree.hidden[at]).prob for at in tree.paths]


@final
class _Tree:
    """A node for each different beginning: its last word, and the hidden state before that.

    All words of one depth are a step of as many streams, side by side.
    """

    def __init__(self, online: OnlineModel, paths: Sequence[np.ndarray]) -> None:
        lengths = np.fromiter(map(len, paths), np.int64, len(paths))
        inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
        words, nodes = np.zeros((2, *inside.shape), np.int64)
        none = np.empty(0, np.int64)
        words[inside] = np.concatenate([none, *paths])
        size, found = int(words.max(initial=0)) + 1, [(online.hidden[:0], none)]
        hidden, state = online.hidden, online.network_state
        # The paths that go on, and the stream that each of them follows.
        here = np.flatnonzero(lengths)
        stream, count = np.zeros(len(here), np.int64), 0
        for depth in range(inside.shape[1]):
            keys, place = np.unique(stream * size + words[here, depth], return_inverse=True)
            before, ids = np.divmod(keys, size)
            found.append((hidden[before], ids))
            nodes[here, depth] = count + place
            count += len(keys)
            on = lengths[here] > depth + 1
            onward, stream = np.unique(place[on], return_inverse=True)
            here, before = here[on], before[onward]
            if len(here):
                hidden, state = online.lm.advance(
                    tuple(part[:, before] for part in state), ids[onward]
                )
        self.hidden: Hidden = np.concatenate([hidden for hidden, _ in found])
        self.ids: Ids = np.concatenate([ids for _, ids in found])
        self.paths = [row[:length] for row, length in zip(nodes, lengths.tolist(), strict=True)]
