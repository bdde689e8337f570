"""Mixtures: whom to believe. Row t is mixed with weights learned from the rows before t."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded import _native
from unbounded.errors import SettingError
from unbounded.shapes import Float
from unbounded.states import Arrays, Stateful
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
        for name, part in vars(self).items():
            vars(fork)[name] = part.fork() if isinstance(part, Mixture) else part.copy()
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
