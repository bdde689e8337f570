"""Figure 1: the same search, cut after 1, 2, 4, … neighbors; and other kernels."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from experiments.cells import stream
from experiments.config import Cell
from experiments.corpora import SEED, Corpora
from experiments.reading import Resumable, read_on
from unbounded.datastore import Auto, Neighbors
from unbounded.evaluation.metrics import surprise
from unbounded.experts import Kernel, Static, Uniform, Unigram
from unbounded.experts.cache import unit_length
from unbounded.experts.distribution import Sparse
from unbounded.lm import Pretrained
from unbounded.mixture import Online
from unbounded.states import Arrays, from_array, part, to_array, under
from unbounded.types import Ids, Probs, Table

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

K = 4096
"""Neighbors that are searched for; the others are cut from these."""

BLOCK, BLOCKS = 512, 200
"""Words whose neighbors are looked at together, and how many such blocks at most: every word is
remembered, and the blocks that are scored lie evenly in the text."""

ASKED = {
    **{f"k {2**i}": (2**i, Kernel()) for i in range(K.bit_length())},
    **{f"gaussian {s:g}": (K, Kernel("gaussian", s)) for s in SHARPNESS},
    **{f"epanechnikov {s:g}": (K, Kernel("epanechnikov", s)) for s in (1.0, 2.0, 4.0)},
}
"""What is tried: the default kernel at powers of two, and every kernel at `K`."""


@final
class _Sum:
    """One mixture and its nats."""

    def __init__(self, experts: int) -> None:
        self.mixture = Online(experts)
        self.nats = 0.0

    def count(self, table: Table) -> None:
        self.nats += float(surprise(self.mixture.score(table).prob).sum())


@final
class Nearest(Resumable):
    """Reads a text, and scores some of its blocks with every kernel and number of neighbors."""

    def __init__(self, model: Pretrained, size: int, every: int) -> None:
        """One block of `every` so many is scored, under a full vocabulary of that size."""
        self._model, self._size, self._every = model, size, every
        self._vocabulary = model.vocabulary.copy()
        self._before, self._state = model.lm.start()
        self._static, self._uniform = Static(model.lm), Uniform(size)
        self._unigram, self._memory = Unigram(size), Auto(model.lm.width)
        self._sums = {
            **{name: _Sum(3) for name in ASKED},
            "static": _Sum(2),
            "unigram": _Sum(3),
            "family": _Sum(2 + len(SHARPNESS)),
        }
        self.tokens = self._blocks = self._scored = 0

    def read(self, words: Sequence[str]) -> None:
        """Remember a block, and score it if it is its turn."""
        ids = self._vocabulary.encode(words)
        after, self._state = self._model.lm.advance(self._state, ids)
        hidden = np.concatenate([self._before, after[:-1]])
        self._before = after[-1:]
        keys = unit_length(hidden)
        counts = self._unigram.score(hidden, ids)
        self._blocks += 1
        self.tokens += len(ids)
        if self._blocks % self._every:
            self._memory.add(keys, ids)
            return
        base = np.stack([self._static.score(hidden, ids), self._uniform.score(hidden, ids)], axis=1)
        votes = self._votes(self._memory.read(keys, ids, K).in_order(), ids)
        extra = {
            **votes,
            "static": base[:, :0],
            "unigram": counts,
            "family": np.column_stack([votes[f"gaussian {s:g}"] for s in SHARPNESS]),
        }
        for name, one in self._sums.items():
            one.count(np.column_stack([base, extra[name]]))
        self._scored += len(ids)

    def _votes(self, found: Neighbors, ids: Ids) -> dict[str, Probs]:
        return {
            name: Sparse(found.words[:, :k], kernel.weights(found.squared[:, :k]), self._size).prob(
                ids
            )
            for name, (k, kernel) in ASKED.items()
        }

    def parts(self) -> Iterator[Arrays]:
        """The memory, and the rest."""
        yield under("memory", self._memory.state())
        found = {
            "vocabulary": to_array(
                self._vocabulary.decode(
                    np.arange(self._vocabulary.base_size, len(self._vocabulary))
                )
            ),
            "hidden": self._before.copy(),
            **{f"network.{i}": array.copy() for i, array in enumerate(self._state)},
            **under("unigram", self._unigram.state()),
            "counts": np.array([self.tokens, self._blocks, self._scored]),
            "nats": np.array([one.nats for one in self._sums.values()]),
        }
        for name, one in self._sums.items():
            found |= under(f"sum {name}", one.mixture.state())
        yield found

    def load(self, state: Arrays) -> None:
        """Become what gave the parts."""
        self._vocabulary.restore(from_array(state["vocabulary"]))
        self._before = state["hidden"]
        self._state = tuple(state[f"network.{i}"] for i in range(len(self._state)))
        self._unigram.load([part("unigram", state)])
        self._memory.load([part("memory", state)])
        self.tokens, self._blocks, self._scored = state["counts"].tolist()
        for (name, one), nats in zip(self._sums.items(), state["nats"].tolist(), strict=True):
            one.nats = nats
            one.mixture.load([part(f"sum {name}", state)])

    def to_json(self) -> dict[str, Any]:
        """Nats a word of each, over the words that were scored."""
        nats = {name: one.nats / max(self._scored, 1) for name, one in self._sums.items()}
        return {
            "tokens": self.tokens,
            "scored": self._scored,
            **{name: nats.pop(name) for name in ("static", "unigram", "family")},
            "lines": nats,
        }


def read_neighbors(cell: Cell, model: Pretrained, corpora: Corpora, kept: Path) -> dict[str, Any]:
    """Nats a word of static + unigram, and of static + a cache for every kernel and k."""
    text = corpora.text(cell.test, "test")
    met, tokens = model.vocabulary.copy(), 0
    for words in stream(text, model, cell.tokens):
        tokens += len(met.encode(words))
    run = Nearest(model, len(met), max(1, tokens // (BLOCK * BLOCKS)))
    named = f"{cell.train} → {cell.test}, neighbors"
    read_on(run, stream(text, model, cell.tokens, BLOCK), kept, lambda: None, named)
    return {"seed": SEED, **run.to_json()}
