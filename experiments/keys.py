"""Which state of the network the memory is searched by: an ablation, one word at a time."""

from typing import final

import numpy as np

from unbounded.errors import SettingError
from unbounded.experts.cache import unit_length
from unbounded.lm import LanguageModel
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids

KEYS = ("hidden", "normalized", "cell", "both", "pca")

_SAMPLE = 16_384
"""States of the training text that axes are fitted to."""


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
