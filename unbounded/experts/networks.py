"""The network's own opinion: frozen, with an output layer that learns, or training on.

Where the output layer alone learns, the states below it are the frozen network's: a memory of them
stays valid, and nothing has to be carried back through time.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from unbounded.experts.distribution import Distribution, Networked
from unbounded.experts.expert import Expert
from unbounded.lm import AdaptedHead, HeadedModel, LanguageModel, LearningHead
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
class DynamicHead(Expert):
    """An output layer that goes on learning: a step after every segment of the stream.

    Segments are counted from the first word, and each is learned from as a whole once it is
    complete: the weights do not depend on how the stream was cut. What it predicts is to be asked
    before it reads on.
    """

    # Small steps one after another: two threads gain a fifth here, and all of it elsewhere.
    apart = True

    def __init__(self, lm: HeadedModel, head: LearningHead | None = None) -> None:
        self._head = head or lm.learning_head()
        # The segment that is not complete yet.
        self._hidden = np.empty((0, lm.width), np.float32)
        self._words = np.empty(0, np.int64)

    @property
    def bytes(self) -> int:
        """Of its weights."""
        return self._head.bytes

    def predict(self, hidden: Hidden) -> Distribution:
        """What the output layer says now."""
        return Networked(self._head, hidden)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn, segment by segment."""
        head, held = self._head, len(self._words)
        states, targets = np.concatenate([self._hidden, hidden]), np.append(self._words, words)
        probs, whole = np.empty(len(targets)), len(targets) // head.segment * head.segment
        if whole:
            probs[:whole] = head.learn(states[:whole], targets[:whole])
        if (start := max(whole, held)) < len(targets):
            probs[start:] = head.prob(states[start:], targets[start:])
        self._hidden, self._words = states[whole:].copy(), targets[whole:].copy()
        return probs[held:]

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The segment that is not complete, and what was learned."""
        return {
            "hidden": self._hidden.copy(),
            "words": self._words.copy(),
            **self._head.state(),
        }

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        state = parts[-1]
        self._hidden, self._words = state["hidden"].copy(), state["words"].copy()
        self._head.load(state)


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
