"""An adapter beneath a frozen output layer that is too large to copy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from unbounded.errors import check_settings
from unbounded.lm.learning_head import LearningHead
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs

if TYPE_CHECKING:
    from unbounded.lm.transformer import TransformerModel

WEIGHTS = 2**20
"""At most so many: four megabytes a memory."""


@dataclass(frozen=True)
class AdapterConfig:
    """How it learns; chosen on SmolLM2 over wiki and news (docs/log.md)."""

    segment: int = 16
    """Pieces between two steps."""

    rate: float = 0.16
    """Of a step, divided by the width: how far it moves a state does not depend on that."""

    calm: float = 1e-2
    """Added to the root of Adagrad's sums, of which each row has one."""

    def __post_init__(self) -> None:
        check_settings(self, above_zero="segment rate calm")


@final
class Adapter(LearningHead):
    """The output layer reads h + A h instead of h: A is zero at first, and learns.

    The states of very wide networks are seen along as many directions as `WEIGHTS` allows, those
    along which the layer's weights are largest.
    """

    def __init__(self, lm: "TransformerModel", config: AdapterConfig = AdapterConfig()) -> None:
        self._lm, self._config = lm, config
        self.base_size, self.segment = lm.base_size, config.segment
        layer = lm.first_weight
        width = layer.shape[1]
        self._axes = main_axes(layer, WEIGHTS // width) if width**2 > WEIGHTS else None
        seen = width if self._axes is None else self._axes.shape[1]
        self._weight, self._sums = np.zeros((width, seen), np.float32), np.zeros(width, np.float32)
        self.bytes = self._weight.nbytes

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """What the output layer says of the moved states."""
        return self._lm.prob(self._moved(self._lm.outputs(hidden)), words)

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The same of every piece."""
        return self._lm.dense(self._moved(self._lm.outputs(hidden)))

    def learn(self, hidden: Hidden, words: Ids) -> Probs:
        """Adagrad on the mean surprise, a step a segment."""
        outputs, config = self._lm.outputs(hidden), self._config
        probs = np.empty(len(words))
        for start in range(0, len(words), config.segment):
            rows = slice(start, start + config.segment)
            states = outputs[rows]
            probs[rows], slopes = self._lm.slopes(self._moved(states), words[rows])
            slope = slopes.T @ self._seen(states) / config.segment
            self._sums += np.square(slope).mean(1)
            pace = config.rate / len(self._weight) / (np.sqrt(self._sums) + config.calm)
            self._weight -= pace[:, None] * slope
        return probs

    def state(self) -> dict[str, np.ndarray]:
        """The adapter and its sums."""
        if not self._sums.any():
            return {}
        found = {"adapter": self._weight.copy(), "sums": self._sums.copy()}
        return found if self._axes is None else {**found, "axes": self._axes.copy()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._weight = state.get("adapter", np.zeros_like(self._weight)).copy()
        self._sums = state.get("sums", np.zeros_like(self._sums)).copy()
        self._axes = state.get("axes", self._axes)

    def _seen(self, states: Hidden) -> Float[np.ndarray, "n seen"]:
        return states if self._axes is None else states @ self._axes

    def _moved(self, states: Hidden) -> Hidden:
        moved: Hidden = states + self._seen(states) @ self._weight.T
        return moved


def main_axes(weight: np.ndarray, rank: int) -> np.ndarray:
    """The directions along which a layer's weights are largest, as columns."""
    # Those of the squares, which are few: a hundred times as fast to take apart as the rows.
    rows = weight.astype(np.float64)
    directions = np.linalg.eigh(rows.T @ rows)[1][:, ::-1]
    return np.ascontiguousarray(directions[:, : min(rank, *weight.shape)], np.float32)
