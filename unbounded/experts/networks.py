"""The network's own opinion: frozen, with an output layer that learns, or training on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from unbounded.experts.distribution import Distribution, Networked
from unbounded.experts.expert import Expert
from unbounded.lm import AdaptedHead, LanguageModel
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids, Probs

if TYPE_CHECKING:
    from unbounded.lm import DynamicModel


@final
class Static(Expert):
    """The frozen network, which learns nothing."""

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm

    def predict(self, hidden: Hidden) -> Distribution:
        """What the network says."""
        return Networked(self._lm, hidden)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """The network's probabilities."""
        return self._lm.prob(hidden, words)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Nothing."""


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

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn, a step every so many words."""
        return self._head.read(hidden, words)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """How the layer has changed, and the words since its last step."""
        return self._head.state()

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        self._head.load(parts[-1])


@final
class Dynamic(Expert):
    """Dynamic evaluation (Krause et al., 2018), a baseline: the network goes on training.

    Its states are those of its own network: the ones it is given are not looked at, and the words
    must be one stream. What it predicts is to be asked before it reads on.
    """

    def __init__(self, network: "DynamicModel") -> None:
        self._network = network

    def predict(self, hidden: Hidden) -> Distribution:
        """What its own network says now; the same whatever the hidden state."""
        return Networked(self._network.lm, np.repeat(self._network.hidden, len(hidden), axis=0))

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn, segment by segment."""
        return self._network.read(words)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Its weights, and the segment that is not complete yet."""
        return self._network.state()

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        self._network.load(parts[-1])
