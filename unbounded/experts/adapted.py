"""The network's output layer, learning as it reads, as an expert."""

from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded.experts.distribution import Distribution, Networked
from unbounded.experts.expert import Expert
from unbounded.lm import AdaptedHead
from unbounded.types import Hidden, Ids, Probs


@final
class Adapted(Expert):
    """The frozen network with an output layer that learns; its hidden states stay as they are.

    What it predicts is to be asked before it reads on.
    """

    def __init__(self, head: AdaptedHead) -> None:
        self._head = head

    def predict(self, hidden: Hidden) -> Distribution:
        """What the output layer says now."""
        return Networked(self._head, hidden)

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Learn, a step every so many words."""
        self._head.read(hidden, words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn."""
        return self._head.read(hidden, words)

    def state(self) -> dict[str, np.ndarray]:
        """How the layer has changed, and the words since its last step."""
        return self._head.state()

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._head.load(state)
