"""A network small enough to think about: deterministic, exact, no torch."""

from typing import final

import numpy as np
from jaxtyping import Float

from unbounded.lm import LanguageModel
from unbounded.types import Hidden, Ids, Probs, State


@final
class ToyModel(LanguageModel):
    """h' = tanh(h/2 + vector of the word), softmax over the known words; a word at a time."""

    def __init__(self, base_size: int, width: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.base_size = base_size
        self.width = width
        self._vectors = random.normal(size=(base_size + 1, width)).astype(np.float32)
        self._output = random.normal(size=(width, base_size)).astype(np.float32)

    def start(self) -> tuple[Hidden, State]:
        zero = np.zeros((1, self.width), np.float32)
        return zero, (zero,)

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        hidden = np.empty((len(words), self.width), np.float32)
        last = state[0]
        for t, word in enumerate(words):
            last = np.tanh(last / 2 + self._vectors[min(word, self.base_size)])
            hidden[t] = last
        return hidden, (last,)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        known = words < self.base_size
        picked = self.dense(hidden)[np.arange(len(words)), np.where(known, words, 0)]
        return np.where(known, picked, 0.0)

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        # einsum, not matmul: BLAS rounds differently for different numbers of rows.
        scores = np.exp(np.einsum("nd,dv->nv", hidden.astype(np.float64), self._output))
        dense: np.ndarray = scores / scores.sum(axis=1, keepdims=True)
        return dense
