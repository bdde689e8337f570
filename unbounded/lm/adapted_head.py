"""An output layer that goes on learning while the network below it stays frozen.

The hidden states do not change, so a memory of them stays valid. Only the first softmax of the
adaptive softmax learns (the frequent words, and how likely each cluster of the others is); inside
a cluster the frozen network has its say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from unbounded import _native
from unbounded.errors import check_settings
from unbounded.lm.adapter import main_axes
from unbounded.lm.language_model import HeadedModel, LanguageModel, Shortlist
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State

LIMIT = 30.0
"""No logit is moved further than this, so that no exponential overflows; as in `native/`."""


@dataclass(frozen=True)
class AdaptedConfig:
    """How the output layer learns; chosen on news, wiki and web (docs/log.md)."""

    every: int = 64
    """Words between two steps."""

    rank: int = 32
    """Directions of the hidden state that the change looks at: those that move the logits most.
    All 256 would gain a little more, at four times the cost."""

    learning_rate: float = 0.1

    calm: float = 1e-3
    """Added to the root of Adagrad's sums, so that the first steps are small."""

    def __post_init__(self) -> None:
        check_settings(self, least_one="every rank", above_zero="learning_rate calm")


@final
class SharedHead(LanguageModel):
    """A frozen network that keeps what it computed for the last words it was asked about.

    The static expert and the adapted one ask for the same block one after the other; the first
    softmax is most of the work for both. A block is known by its values: comparing them costs a
    hundredth of computing it.
    """

    def __init__(self, lm: HeadedModel) -> None:
        self.lm = lm
        self.base_size = lm.base_size
        self.width = lm.width
        self.closed, self.key_part = lm.closed, lm.key_part
        self._last: tuple[Hidden, Ids, Shortlist] | None = None

    def start(self) -> tuple[Hidden, State]:
        """The network's."""
        return self.lm.start()

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The network's."""
        return self.lm.advance(state, words)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for OOV words."""
        return self.shortlist(hidden, words).prob

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        return self.lm.dense(hidden)

    def shortlist(self, hidden: Hidden, words: Ids) -> Shortlist:
        """The network's, computed once for the same states and words."""
        last = self._last
        if last and np.array_equal(words, last[1]) and np.array_equal(hidden, last[0]):
            return last[2]
        found = self.lm.shortlist(hidden, words)
        self._last = hidden.copy(), words.copy(), found
        return found


@final
class AdaptedHead:
    """The frozen output layer plus a change that learns: a step of Adagrad every so many words.

    The change of a column's logit is linear in a few directions of the hidden state, and zero at
    first. Slopes are added up as words come, and a step is taken at fixed places of the stream.
    """

    def __init__(self, shared: SharedHead, config: AdaptedConfig = AdaptedConfig()) -> None:
        self.config = config
        self.base_size = shared.base_size
        self._shared = shared
        self._look_along(main_axes(shared.lm.first_weight, config.rank))
        # By directions and then columns, so that neighbors in memory are computed together. The
        # last direction is always one: a bias.
        shape = self._axes.shape[1] + 1, len(shared.lm.first_weight)
        self._change, self._sums, self._slope = (np.zeros(shape, np.float32) for _ in range(3))
        self._waiting = 0

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step, as the layer is now; zero for OOV words."""
        found = self._shared.shortlist(hidden, words)
        return _gained(found, self._shares(found, hidden, every=0)[0])

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        lm = self._shared.lm
        found, ends = lm.dense(hidden), lm.cutoffs
        odds = lm.shortlist(hidden, np.zeros(len(hidden), np.int64)).odds.astype(np.float64)
        moves = np.clip(self._signals(hidden).astype(np.float64) @ self._change, -LIMIT, LIMIT)
        gain = np.exp(moves)
        gain *= odds.sum(1, keepdims=True) / (odds * gain).sum(1, keepdims=True)
        found[:, : ends[0]] *= gain[:, : ends[0]]
        for i, (start, end) in enumerate(pairwise(ends)):
            found[:, start:end] *= gain[:, ends[0] + i, None]
        return found

    def read(self, hidden: Hidden, words: Ids) -> Probs:
        """Each word's probability just before it came; and learn them all."""
        found = self._shared.shortlist(hidden, words)
        shares, self._waiting = self._shares(found, hidden, self.config.every)
        return _gained(found, shares)

    def state(self) -> dict[str, np.ndarray]:
        """The change, what Adagrad knows, and the slopes since the last step."""
        arrays = {"change": self._change, "sums": self._sums, "slope": self._slope}
        return {
            "axes": self._axes.copy(),
            **{name: np.ascontiguousarray(array.T) for name, array in arrays.items()},
            "waiting": np.array(self._waiting),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._look_along(state["axes"].copy())
        self._change, self._sums, self._slope = (
            np.ascontiguousarray(state[name].T) for name in ("change", "sums", "slope")
        )
        self._waiting = int(state["waiting"])

    def _look_along(self, axes: np.ndarray) -> None:
        self._axes = axes
        self._projection = _native.Linear(np.ascontiguousarray(axes.T))

    def _signals(self, hidden: Hidden) -> Float[np.ndarray, "n directions"]:
        """What the change looks at: the state along the axes, and one."""
        along = self._projection.multiply(self._shared.lm.outputs(hidden))
        return np.concatenate([along, np.ones((len(hidden), 1), np.float32)], 1)

    def _shares(self, found: Shortlist, hidden: Hidden, every: int) -> tuple[Probs, int]:
        """Each word's column's probability under moved odds; learns if steps are to be taken."""
        return _native.adapted_shares(
            found.odds,
            found.column,
            self._signals(hidden),
            self._change,
            self._sums,
            self._slope,
            self._waiting if every else 0,
            every,
            self.config.learning_rate,
            self.config.calm,
        )


def _gained(found: Shortlist, shares: Probs) -> Probs:
    """The frozen probabilities, each times what its column gained."""
    known = found.share > 0
    return np.where(known, found.prob * shares / np.where(known, found.share, 1), 0.0)
