"""The network that goes on training, as an expert: what a user would pick instead of a memory."""

from collections.abc import Mapping
from typing import Protocol, final, runtime_checkable

import numpy as np

from unbounded.experts.distribution import Distribution, Networked
from unbounded.experts.expert import Expert
from unbounded.lm import LanguageModel
from unbounded.types import Hidden, Ids, Probs


@runtime_checkable
class Learner(Protocol):
    """A network that reads one stream and goes on training; `DynamicModel` is one."""

    @property
    def lm(self) -> LanguageModel:
        """The network as it is now."""

    @property
    def hidden(self) -> Hidden:
        """The state before the next word, one row."""

    def read(self, words: Ids) -> Probs:
        """Each word's probability just before it came; and learn."""

    def state(self) -> dict[str, np.ndarray]:
        """What has changed."""

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""


@final
class Dynamic(Expert):
    """Dynamic evaluation (Krause et al., 2018), a baseline.

    Its states are those of its own network: the ones it is given are not looked at, and the words
    must be one stream. What it predicts is to be asked before it reads on.
    """

    def __init__(self, network: Learner) -> None:
        self._network = network

    def predict(self, hidden: Hidden) -> Distribution:
        """What its own network says now; the same whatever the hidden state."""
        return Networked(self._network.lm, np.repeat(self._network.hidden, len(hidden), axis=0))

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Read, and learn what is complete."""
        self._network.read(words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn, segment by segment."""
        return self._network.read(words)

    def state(self) -> dict[str, np.ndarray]:
        """Its weights, and the segment that is not complete yet."""
        return self._network.state()

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._network.load(state)
