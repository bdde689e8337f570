"""The network's own opinion: frozen, with an output layer that learns, or training on.

Where the output layer alone learns, the states below it are the frozen network's: a memory of them
stays valid, and nothing has to be carried back through time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from unbounded import _native
from unbounded.errors import check_settings
from unbounded.experts.distribution import Dense, Distribution, Networked
from unbounded.experts.expert import Expert
from unbounded.lm import AdaptedHead, LanguageModel, RecurrentModel
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


@dataclass(frozen=True)
class DynamicHeadConfig:
    """How the copy learns; chosen on the first 80,000 words of news and wiki (docs/log.md)."""

    segment: int = 32
    """Words between two steps."""

    rate: float = 0.1
    """Of the output layer."""

    adapter_rate: float = 0.005

    calm: float = 1e-2
    """Added to the root of Adagrad's sums, of which each row has one, so that the first steps are
    small."""

    def __post_init__(self) -> None:
        check_settings(self, above_zero="segment rate adapter_rate calm")


@final
class DynamicHead(Expert):
    """A copy of the output layer, learning: a step of Adagrad after every segment of the stream.

    Beneath it an adapter, h + A h with A zero at first, learns too. Segments are counted from the
    first word, and each is learned from as a whole once it is complete: the weights do not depend
    on how the stream was cut. What it predicts is to be asked before it reads on.
    """

    # Small steps one after another: two threads gain a fifth here, and all of it elsewhere.
    apart = True

    def __init__(self, lm: RecurrentModel, config: DynamicHeadConfig = DynamicHeadConfig()) -> None:
        self._config, self._lm = config, lm
        self.base_size = lm.base_size
        self._head = _native.DynamicHead(*lm.output_layer)
        self.bytes = 4 * lm.width**2 + sum(w.nbytes for w in (lm.first_weight, *lm.output_layer[1]))
        """Of its weights."""
        # The segment that is not complete yet.
        self._hidden = np.empty((0, lm.width), np.float32)
        self._words = np.empty(0, np.int64)

    def predict(self, hidden: Hidden) -> Distribution:
        """What the output layer says now."""
        return Networked(self, hidden)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step, as the layer is now; zero for OOV words."""
        return self._head.softmax.score(self._head.adapt(hidden), words)[0]

    def dense(self, hidden: Hidden) -> Dense:
        """The probability of every word the network knows, at each step."""
        return self._head.softmax.dense(self._head.adapt(hidden))

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Score, look, learn, segment by segment."""
        config, held = self._config, len(self._words)
        states, targets = np.concatenate([self._hidden, hidden]), np.append(self._words, words)
        probs, whole = np.empty(len(targets)), len(targets) // config.segment * config.segment
        if whole:
            rates = config.segment, config.rate, config.adapter_rate, config.calm
            probs[:whole] = self._head.learn(states[:whole], targets[:whole], *rates)
        if (start := max(whole, held)) < len(targets):
            probs[start:] = self.prob(states[start:], targets[start:])
        self._hidden, self._words = states[whole:].copy(), targets[whole:].copy()
        return probs[held:]

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The segment that is not complete; after the first step all weights and their sums."""
        state: dict[str, np.ndarray] = {
            "hidden": self._hidden.copy(),
            "words": self._words.copy(),
        }
        layers = self._head.layers()
        if any(sums.any() for _, sums in layers):
            for i, (weight, sums) in enumerate(layers):
                state |= {f"weight.{i}": weight, f"sums.{i}": sums}
        return state

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        state = parts[-1]
        self._hidden, self._words = state["hidden"].copy(), state["words"].copy()
        self._head = _native.DynamicHead(*self._lm.output_layer)
        for i in range(sum(name.startswith("weight.") for name in state)):
            self._head.load(i, state[f"weight.{i}"], state[f"sums.{i}"])


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
