"""Output layers that go on learning while the network below them stays frozen."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded import _native
from unbounded.errors import check_settings
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs


class LearningHead(ABC):
    """What a network says of frozen states, learning: a step after each segment of the stream."""

    base_size: int
    segment: int
    """Words between two steps."""
    bytes: int
    """Of its weights."""

    @abstractmethod
    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step, as it is now; zero for OOV words."""

    @abstractmethod
    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""

    @abstractmethod
    def learn(self, hidden: Hidden, words: Ids) -> Probs:
        """Each word's probability before its segment taught anything; whole segments only."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """What was learned; nothing before the first step."""

    @abstractmethod
    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""


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
class LearningLayer(LearningHead):
    """A copy of an adaptive softmax, and beneath it an adapter, h + A h with A zero at first."""

    def __init__(
        self,
        output_layer: tuple[np.ndarray, list[np.ndarray], Sequence[int]],
        config: DynamicHeadConfig = DynamicHeadConfig(),
    ) -> None:
        self._layer, self._config = output_layer, config
        first, tails, cutoffs = output_layer
        self.base_size, self.segment = cutoffs[-1], config.segment
        self.bytes = 4 * first.shape[1] ** 2 + sum(weight.nbytes for weight in (first, *tails))
        self._head = _native.DynamicHead(*output_layer)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The adaptive softmax's, as it is now."""
        return self._head.softmax.score(self._head.adapt(hidden), words)[0]

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The same of every word."""
        return self._head.softmax.dense(self._head.adapt(hidden))

    def learn(self, hidden: Hidden, words: Ids) -> Probs:
        """Adagrad, a step a segment."""
        config = self._config
        rates = config.segment, config.rate, config.adapter_rate, config.calm
        return self._head.learn(hidden, words, *rates)

    def state(self) -> dict[str, np.ndarray]:
        """After the first step all weights and their sums."""
        layers = self._head.layers()
        if not any(sums.any() for _, sums in layers):
            return {}
        weights = {f"weight.{i}": weight for i, (weight, _) in enumerate(layers)}
        return weights | {f"sums.{i}": sums for i, (_, sums) in enumerate(layers)}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._head = _native.DynamicHead(*self._layer)
        for i in range(sum(name.startswith("weight.") for name in state)):
            self._head.load(i, state[f"weight.{i}"], state[f"sums.{i}"])
