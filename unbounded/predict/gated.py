"""A mixture whose weights depend on what is known before the word comes."""

from collections.abc import Mapping, Sequence
from typing import final, no_type_check

import numba
import numpy as np
from jaxtyping import Float

from unbounded.errors import SettingError
from unbounded.predict.mixture import Mixture, Online, Scored
from unbounded.states import part, under
from unbounded.types import Context, Table

RATE = 0.2
"""Step of the gate (Adagrad). Half or twice as much costs at most 0.3 % on news and wiki."""

CALM = 1e-2
"""What Adagrad starts its sums of squares from, so that the first steps are small."""

FLOOR = 1e-5
"""The part of the plain weights in the gated ones, so that none is ever zero."""

FADES = np.array([1.0, 0.25, 0.02])
"""How fast the gate forgets who was right: the last word, the last few, the last fifty."""

CLIP = 4.0
"""Signals beyond so many standard deviations count as that many."""

ROUNDING = 1e-6
"""Deviations below this part of the mean are a float's rounding, and are not made large."""


@final
class Gated(Mixture):
    """`Online` weights, tilted by a gate that learns when to believe whom.

    The gate is a softmax over experts: the logarithm of each `Online` weight plus a linear function
    of signals. Its own signals are who was right about the last word, the last few and the last
    fifty, and how surprising the last word was. `groups` are the widths of further ones, given as
    the columns of `context`; the network's hidden state is the best of all that were tried. Every
    group weighs alike, every signal is brought to mean zero and variance one as it is read, and NaN
    is a signal that is not known. The gate learns by gradient steps on the surprise (Adagrad).

    A second `Online` mixes the plain weights and the gated ones. So over T words and m experts it
    loses at most 4 ln 2 + ln 11 + 2 · SHARE · T nats to the plain weights, and at most
    4 ln 2m + 2 ln 11 + 4 · SHARE · T to the best single expert, whatever the signals say: with ten
    experts 21 nats in 100,000 words, or 0.02 % of perplexity.

    >>> table = np.array([[0.9, 0.1], [0.1, 0.9]] * 200)
    >>> turn = np.array([[0.0], [1.0]] * 200)
    >>> plain, gated = Online(2).score(table), Gated(2, groups=[1]).score(table, turn)
    >>> plain.prob[-2:].round(2).tolist(), gated.prob[-2:].round(2).tolist()
    ([0.5, 0.5], [0.9, 0.9])
    """

    def __init__(self, experts: int, groups: Sequence[int] = ()) -> None:
        self._plain = Online(experts)
        self._choice = Online(2)
        own = len(FADES) * experts + 1
        widths = np.array([own, *groups], np.int64)
        if (widths < 1).any():
            raise SettingError(f"groups of {list(groups)} signals; at least 1 is needed in each")
        self._scale = np.repeat(1 / np.sqrt(widths), widths)
        self._seen = np.zeros(1, np.int64)
        self._moments = np.zeros((2, len(self._scale)))
        self._own = np.full(own, np.nan)
        self._tilt = np.zeros((experts, len(self._scale)), np.float32)
        self._squares = np.full_like(self._tilt, CALM)
        self.weights = self._weights()

    def weights_for(self, context: Float[np.ndarray, " f"]) -> Float[np.ndarray, " m"]:
        """The weights for the next word, in its context; changes nothing."""
        return self._weights(context)

    def score(self, table: Table, context: Context | None = None) -> Scored:
        """Mix, look, learn, row by row; without a context every signal of it is unknown."""
        context = self._fit(context, len(table))
        plain = self._plain.score(table)
        prob, gated = np.empty(len(table)), np.empty(plain.weights.shape)
        _gate(
            np.ascontiguousarray(table, np.float64),
            context,
            plain.weights,
            *(self._scale, self._seen, self._moments, self._own, self._tilt, self._squares),
            prob,
            gated,
        )
        choice = self._choice.score(np.stack([plain.prob, prob], axis=1))
        weights = choice.weights[:, :1] * plain.weights + choice.weights[:, 1:] * gated
        self.weights = self._weights()
        return Scored(choice.prob, weights)

    def state(self) -> dict[str, np.ndarray]:
        """Both mixtures' and the gate's."""
        gate = {
            "seen": self._seen,
            "moments": self._moments,
            "own": self._own,
            "tilt": self._tilt,
            "squares": self._squares,
        }
        return {
            **under("plain", self._plain.state()),
            **under("choice", self._choice.state()),
            **{name: array.copy() for name, array in gate.items()},
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._plain.load(part("plain", state))
        self._choice.load(part("choice", state))
        self._seen = state["seen"].copy()
        self._moments = state["moments"].copy()
        self._own = state["own"].copy()
        self._tilt = state["tilt"].copy()
        self._squares = state["squares"].copy()
        self.weights = self._weights()

    def _weights(self, context: Float[np.ndarray, " f"] | None = None) -> Float[np.ndarray, " m"]:
        signals = np.empty(len(self._scale), np.float32)
        row = self._fit(None if context is None else context[None], 1)[0]
        values = np.concatenate([self._own, row]).astype(np.float32)
        _standardize(values, self._scale, int(self._seen[0]), self._moments, signals)
        gated = np.empty(len(self._tilt))
        _tilted(self._plain.weights, self._tilt, signals, gated)
        plain, other = self._choice.weights
        weights: np.ndarray = plain * self._plain.weights + other * gated
        return weights

    def _fit(self, context: Context | None, steps: int) -> Context:
        """The context as the gate takes it; NaN where there is none."""
        width = len(self._scale) - len(self._own)
        if context is None:
            return np.full((steps, width), np.nan, np.float32)
        if context.shape[1] != width:
            raise SettingError(
                f"{context.shape[1]} signals for a gate of {width}; give all of them"
            )
        return np.ascontiguousarray(context, np.float32)


# The inner loops are written, and these flags chosen, so that wide registers are used: no branches,
# sums in any order, and no look at each divisor. Together they are twice as fast.
_wide = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)


@_wide
@no_type_check
def _standardize(values, scale, seen, moments, out):
    """Signals less their mean, over their deviation; zero where either or the signal is unknown."""
    mean, squares = moments[0], moments[1]
    for j in range(len(values)):
        far = (values[j] - mean[j]) / (np.sqrt(squares[j] / seen) + ROUNDING * abs(mean[j]))
        near = min(max(far, -CLIP), CLIP) * scale[j]
        out[j] = near if abs(far) < np.inf else 0.0


@_wide
@no_type_check
def _learn_moments(values, seen, moments):
    """Welford's update of means and of sums of squared deviations; an unknown value is the mean."""
    mean, squares = moments[0], moments[1]
    part = 1.0 / seen
    for j in range(len(values)):
        off = values[j] - mean[j]
        off = off if abs(off) < np.inf else 0.0
        mean[j] += off * part
        squares[j] += off * off * (1.0 - part)


@_wide
@no_type_check
def _dot(left, right):
    total = np.float32(0.0)
    for j in range(len(right)):
        total += left[j] * right[j]
    return total


@_wide
@no_type_check
def _step(slope, signals, tilt, squares):
    """Adagrad: each tilt by its slope over the root of the sum of all its squared slopes."""
    for j in range(len(signals)):
        step = slope * signals[j]
        squares[j] += step * step
        tilt[j] += np.float32(RATE) * step / np.sqrt(squares[j])


@numba.njit(cache=True, nogil=True)
@no_type_check
def _tilted(plain, tilt, signals, out):
    """The gate's weights: plain ones times the exponential of what the signals say of each."""
    experts = len(plain)
    top = -np.inf
    for i in range(experts):
        out[i] = np.log(plain[i]) + _dot(tilt[i], signals)
        top = max(top, out[i])
    total = 0.0
    for i in range(experts):
        out[i] = np.exp(out[i] - top)
        total += out[i]
    for i in range(experts):
        out[i] = (1.0 - FLOOR) * out[i] / total + FLOOR * plain[i]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _gate(table, context, plain, scale, seen, moments, own, tilt, squares, prob, weights):
    """One step a row: weigh, look, tilt toward who was right, and note who was."""
    experts = table.shape[1]
    signals = np.empty(len(scale), np.float32)
    values = np.empty(len(scale), np.float32)
    for t in range(len(table)):
        values[: len(own)] = own
        values[len(own) :] = context[t]
        _standardize(values, scale, seen[0], moments, signals)
        _tilted(plain[t], tilt, signals, weights[t])
        prob[t] = 0.0
        usual = 0.0
        for i in range(experts):
            prob[t] += weights[t, i] * table[t, i]
            usual += plain[t, i] * table[t, i]
        for i in range(experts):
            slope = weights[t, i] * (table[t, i] / prob[t] - 1.0)
            _step(np.float32(slope), signals, tilt[i], squares[i])
        seen[0] += 1
        _learn_moments(values, seen[0], moments)
        for i in range(experts):
            right = plain[t, i] * table[t, i] / usual
            for k in range(len(FADES)):
                at = i * len(FADES) + k
                before = own[at] if np.isfinite(own[at]) else 1.0 / experts
                own[at] = before + FADES[k] * (right - before)
        own[-1] = np.log(usual)
