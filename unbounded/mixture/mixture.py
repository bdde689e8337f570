"""Mixtures: whom to believe. Row t is mixed with weights learned from the rows before t."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded import _native
from unbounded.errors import SettingError
from unbounded.shapes import Float
from unbounded.states import Arrays, Stateful, part, under
from unbounded.types import Context, Probs, Table

RATES = 0.5 ** np.arange(2, 13)
"""Learning rates that `Online` tries side by side: 1/4, 1/8, …, 1/4096."""

SHARE = 1e-5
"""How much of the trust in a rate, and of a weight, flows to the others at each step."""


@dataclass(frozen=True)
class Scored:
    """The mixture's probability of each word, and the weights it was mixed with."""

    prob: Probs
    weights: Table


class Mixture(Stateful):
    """Weights over experts that sum to one."""

    @property
    @abstractmethod
    def weights(self) -> Float[np.ndarray, " m"]:
        """The weights for the next word, as far as its context does not matter."""

    def fork(self) -> "Mixture":
        """One that knows the same, and learns for itself."""
        fork = object.__new__(type(self))
        for name, own in vars(self).items():
            vars(fork)[name] = own.fork() if isinstance(own, Mixture) else own.copy()
        return fork

    @abstractmethod
    def weights_for(self, context: Float[np.ndarray, " f"]) -> Float[np.ndarray, " m"]:
        """The weights for the next word, in its context; changes nothing."""

    @abstractmethod
    def score(self, table: Table, context: Context | None = None) -> Scored:
        """Mix each row with the weights as they were before it, learning as it goes.

        A row of `context` is what was known before that row's word; most mixtures do not look.
        """


@final
class Fixed(Mixture):
    """The paper's linear interpolation: weights that never change.

    >>> Fixed(np.array([0.5, 0.5])).score(np.array([[0.2, 0.4]])).prob.round(3).tolist()
    [0.3]
    """

    def __init__(self, weights: Float[np.ndarray, " m"]) -> None:
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise SettingError(
                f"mixture weights {weights.tolist()}; they must be positive and sum to 1"
            )
        self._weights: np.ndarray = weights / weights.sum()

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """The same for every word."""
        return self._weights

    def weights_for(self, context: Float[np.ndarray, " f"]) -> Float[np.ndarray, " m"]:
        """The same in every context."""
        return self.weights

    def score(self, table: Table, context: Context | None = None) -> Scored:
        """Weighted sums."""
        # Row by row: a matrix product rounds differently when it has more rows.
        parts = np.ascontiguousarray(table * self.weights)
        return Scored(parts.sum(axis=1), np.tile(self.weights, (len(table), 1)))

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The weights."""
        return {"weights": self._weights.copy()}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        state = parts[-1]
        self._weights = state["weights"].copy()


@final
class Online(Mixture):
    """Weights learned as it reads, with nothing to tune.

    One Soft-Bayes learner (Orseau, Lattimore and Legg, 2017) for each rate η in `RATES` moves its
    weights by w ← w · (1 − η + η p / (w · p)): a small step of online EM. The learners are
    themselves mixed by how well they did (Bayes with a small share to all), so whatever rate suits
    this text is found.

    Over T words and m experts it loses at most 4 ln m + ln 11 + 2 · SHARE · T nats to the best
    single expert, whatever comes: ln x ≤ ln(1 − η + η x) / η adds up to ln(m) / η, here with
    η = 1/4. Against the best fixed weights in hindsight the loss of Soft-Bayes grows as √T; the
    tests hold it to min over η of ln(m) / η + m T ln(1 / (1 − η)).
    """

    def __init__(self, experts: int) -> None:
        if experts < 1:
            raise SettingError(f"a mixture of {experts} experts; at least 1 is needed")
        self._by_rate = np.full((len(RATES), experts), 1 / experts)
        self._trust = np.full(len(RATES), 1 / len(RATES))

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Those of each rate, by how much it is trusted."""
        weights: np.ndarray = self._trust @ self._by_rate
        return weights

    def weights_for(self, context: Float[np.ndarray, " f"]) -> Float[np.ndarray, " m"]:
        """The same in every context."""
        return self.weights

    def score(self, table: Table, context: Context | None = None) -> Scored:
        """Mix, look, learn, row by row."""
        prob, weights, learned = _native.mixture_online(
            np.ascontiguousarray(table, np.float64), self._by_rate, self._trust
        )
        if learned < len(table):
            raise SettingError(
                "a word has probability zero under every expert; "
                "add a uniform expert to the mixture"
            )
        return Scored(prob, weights)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Weights by rate and trust in each rate."""
        return {"by_rate": self._by_rate.copy(), "trust": self._trust.copy()}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        state = parts[-1]
        self._by_rate = state["by_rate"].copy()
        self._trust = state["trust"].copy()


CALM = 1e-2
"""What Adagrad starts its sums of squares from, so that the first steps are small."""

FADES = 3
"""The gate forgets who was right at so many speeds: the last word, the last few, the last fifty."""


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
        own = FADES * experts + 1
        widths = np.array([own, *groups], np.int64)
        if (widths < 1).any():
            raise SettingError(f"groups of {list(groups)} signals; at least 1 is needed in each")
        self._scale = np.repeat(1 / np.sqrt(widths), widths)
        self._seen = np.zeros(1, np.int64)
        self._moments = np.zeros((2, len(self._scale)))
        self._own = np.full(own, np.nan)
        self._tilt = np.zeros((experts, len(self._scale)), np.float32)
        self._squares = np.full_like(self._tilt, CALM)

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Those for a word of whose context nothing is known."""
        return self._weights()

    def weights_for(self, context: Float[np.ndarray, " f"]) -> Float[np.ndarray, " m"]:
        """The weights for the next word, in its context; changes nothing."""
        return self._weights(context)

    def score(self, table: Table, context: Context | None = None) -> Scored:
        """Mix, look, learn, row by row; without a context every signal of it is unknown."""
        context = self._fit(context, len(table))
        plain = self._plain.score(table)
        prob, gated = _native.mixture_gate(
            np.ascontiguousarray(table, np.float64), context, plain.weights, self._gate()
        )
        choice = self._choice.score(np.stack([plain.prob, prob], axis=1))
        weights = choice.weights[:, :1] * plain.weights + choice.weights[:, 1:] * gated
        return Scored(choice.prob, weights)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
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

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        state = parts[-1]
        self._plain.load([part("plain", state)])
        self._choice.load([part("choice", state)])
        self._seen = state["seen"].copy()
        self._moments = state["moments"].copy()
        self._own = state["own"].copy()
        self._tilt = state["tilt"].copy()
        self._squares = state["squares"].copy()

    def _weights(self, context: Float[np.ndarray, " f"] | None = None) -> Float[np.ndarray, " m"]:
        row = self._fit(None if context is None else context[None], 1)
        gated = _native.mixture_weigh(row, self._plain.weights[None], self._gate())
        plain, other = self._choice.weights
        weights: np.ndarray = plain * self._plain.weights + other * gated
        return weights

    def _gate(self) -> tuple[np.ndarray, ...]:
        return self._scale, self._seen, self._moments, self._own, self._tilt, self._squares

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


def fit_weights(table: Table, *, prior: float = 0.0, rounds: int = 200) -> Float[np.ndarray, " m"]:
    """The fixed weights under which the rows were likeliest, by EM.

    `prior` is a number of imaginary words that each expert alone foresaw: with one, an expert that
    the rows never needed keeps a weight, for the day an OOV word comes.

    >>> fit_weights(np.array([[0.9, 0.1], [0.1, 0.9]] * 50)).round(3).tolist()
    [0.5, 0.5]
    """
    experts = table.shape[1]
    weights = np.full(experts, 1 / experts)
    for _ in range(rounds):
        shares = table * weights
        seen = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0) + prior
        new = seen / seen.sum()
        if np.abs(new - weights).max() < 1e-9:
            break
        weights = new
    return weights
