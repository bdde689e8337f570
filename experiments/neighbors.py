"""Figure 1: the same search, cut after 1, 2, 4, … neighbors; other kernels; and other keys."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, final

import numpy as np

from experiments.config import Cell
from experiments.corpora import SEED, Corpora
from unbounded.corpus import Reader, blocks, read_sentences
from unbounded.datastore import Neighbors
from unbounded.errors import SettingError
from unbounded.evaluation.metrics import Tally, surprise
from unbounded.experts import Kernel, Static, Uniform, Unigram
from unbounded.experts.cache import unit_length
from unbounded.experts.distribution import Sparse
from unbounded.lm import LanguageModel, Pretrained
from unbounded.mixture import Online
from unbounded.presets import INDEXES
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, Table

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

KEYS = ("hidden", "normalized", "cell", "both", "pca")

_SAMPLE = 16_384
"""States of the training text that axes are fitted to."""


@final
class _Line:
    """One mixture and its sum."""

    def __init__(self, experts: int) -> None:
        self._mixture = Online(experts)
        self._tally = Tally()

    def count(self, table: Table) -> None:
        nats = surprise(self._mixture.score(table).prob)
        self._tally.add(float(nats.sum()), len(nats), 0)

    @property
    def nats(self) -> float:
        return self._tally.nats / max(self._tally.tokens, 1)


def kernels_asked(k: int) -> dict[str, tuple[int, Kernel]]:
    """What is tried: the default kernel at powers of two, and every kernel at `k`."""
    powers = [2**i for i in range(k.bit_length()) if 2**i <= k]
    return {
        **{f"k {power}": (power, Kernel()) for power in powers},
        **{f"gaussian {s:g}": (k, Kernel("gaussian", s)) for s in SHARPNESS},
        **{f"epanechnikov {s:g}": (k, Kernel("epanechnikov", s)) for s in (1.0, 2.0, 4.0)},
    }


def run_neighbors(
    cell: Cell, model: Pretrained, corpora: Corpora, show: Callable[[int, str], None]
) -> dict[str, Any]:
    """Nats a word of static + unigram, and of static + a cache for every kernel and k."""
    text = Reader([corpora.text(cell.test, "test")])
    met = model.vocabulary.copy()
    for block in blocks(read_sentences(text, model.tokenizer), 8192, cell.tokens):
        met.encode(block.words)
    size, vocabulary = len(met), model.vocabulary.copy()
    static, uniform, unigram = Static(model.lm), Uniform(size), Unigram(size)
    key = Keys(cell.key, model.lm, model.text)
    memory = INDEXES[cell.index](key.width)
    asked = kernels_asked(cell.k)
    lines = {name: _Line(3) for name in asked}
    plain, with_unigram, family = _Line(2), _Line(3), _Line(2 + len(SHARPNESS))
    before, state = model.lm.start()
    read = 0
    for block in blocks(read_sentences(text, model.tokenizer), 512, cell.tokens):
        ids = vocabulary.encode(block.words)
        after, state = model.lm.advance(state, ids)
        hidden = np.concatenate([before, after[:-1]])
        before = after[-1:]
        base = np.stack([static.score(hidden, ids), uniform.score(hidden, ids)], axis=1)
        keys = key.of(hidden, ids)
        found = memory.read(keys, ids, cell.k).in_order()
        votes = _votes(found, asked, ids, size)
        plain.count(base)
        with_unigram.count(np.column_stack([base, unigram.score(hidden, ids)]))
        for name, line in lines.items():
            line.count(np.column_stack([base, votes[name]]))
        sharp = [votes[f"gaussian {s:g}"] for s in SHARPNESS]
        family.count(np.column_stack([base, *sharp]))
        read += len(ids)
        show(read, f"static {np.exp(plain.nats):,.1f}")
    return {
        "cell": asdict(cell),
        "seed": SEED,
        "tokens": read,
        "static": plain.nats,
        "unigram": with_unigram.nats,
        "family": family.nats,
        "lines": {name: line.nats for name, line in lines.items()},
    }


def _votes(
    found: Neighbors, asked: Mapping[str, tuple[int, Kernel]], ids: Ids, size: int
) -> dict[str, Probs]:
    return {
        name: Sparse(found.words[:, :k], kernel.weights(found.squared[:, :k]), size).prob(ids)
        for name, (k, kernel) in asked.items()
    }


@final
class Keys:
    """The key of each step: the hidden state as it is (the paper's), scaled to length one, the
    LSTM's cell state, hidden and cell state side by side, or the half of all directions in which
    normalized states of the training text differ most."""

    def __init__(self, name: str, lm: LanguageModel, text: Ids | None = None) -> None:
        if name not in KEYS:
            raise SettingError(f"key {name!r} is unknown; use one of {', '.join(KEYS)}")
        self._name = name
        self._lm = lm
        _, self._state = lm.start()
        if name in ("cell", "both") and len(self._state) < 2:
            raise SettingError(f"key {name!r} needs an LSTM; this network has no cell state")
        self.width = lm.width * (2 if name == "both" else 1)
        if name == "pca":
            self._axes = _axes(lm, text)
            self.width = self._axes.shape[1]

    def of(self, hidden: Hidden, words: Ids) -> Float[np.ndarray, "n width"]:
        """The keys before each word, given the hidden states before each word."""
        if self._name == "hidden":
            return hidden
        if self._name == "normalized":
            return unit_length(hidden)
        if self._name == "pca":
            turned: Hidden = unit_length(hidden) @ self._axes
            return turned
        # The network hands out hidden states only; its cell state is in what it carries on.
        cells = np.empty_like(hidden)
        for t in range(len(words)):
            cells[t] = self._state[1].ravel()
            _, self._state = self._lm.advance(self._state, words[t : t + 1])
        return cells if self._name == "cell" else np.concatenate([hidden, cells], axis=1)


def _axes(lm: LanguageModel, text: Ids | None) -> Float[np.ndarray, "d half"]:
    """The directions in which a sample of states differs most, half of all, side by side."""
    if text is None or not len(text):
        raise SettingError("key 'pca' needs the training text, which this model does not keep")
    first, state = lm.start()
    states = unit_length(np.concatenate([first, lm.advance(state, text[:_SAMPLE])[0]]))
    _, directions = np.linalg.eigh(np.cov(states.T))
    axes: np.ndarray = np.ascontiguousarray(directions[:, -(lm.width // 2) :], np.float32)
    return axes
