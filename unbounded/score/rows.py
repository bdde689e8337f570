"""The rows of a table: which experts each mixes, and what each has scored so far."""

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from unbounded.predict import Fixed, Gated, Mixture, Online, Reading, Scored, fit_weights
from unbounded.score.metrics import BANDS, Tally, surprise
from unbounded.types import Ids, Probs, Table

ROWS: dict[str, tuple[str, ...]] = {
    "static": ("static", "uniform"),
    "unigram": ("static", "uniform", "unigram"),
    "local": ("static", "uniform", "local"),
    "unbounded": ("static", "uniform", "unbounded"),
    "full": ("static", "uniform", "unigram", "ngram", "local", "unbounded"),
}
"""The paper's four rows and all experts together; "we always interpolate … with the uniform"."""

PROTOCOLS = ("paper", "open")
"""`paper`: strangers come from a uniform over training and test words. `open`: nothing of the
future is known, and strangers are spelled."""

GATED = ("full",)
"""Rows whose weights depend on the state before each word; the others learn one set of weights."""

TITLES = {
    "static": "static",
    "unigram": "static + unigram",
    "local": "static + local cache",
    "unbounded": "static + unbounded cache",
    "full": "all together",
}
"""What people call them."""


def experts_under(protocol: str, name: str) -> tuple[str, ...]:
    """The experts of a row: those of the paper, with the uniform replaced under another protocol.

    >>> experts_under("open", "unigram")
    ('static', 'spelling', 'unigram')
    """
    swapped = {"uniform": "spelling"} if protocol == "open" else {}
    return tuple(swapped.get(expert, expert) for expert in ROWS[name])


def new_mixture(name: str, experts: Sequence[str], width: int) -> Mixture:
    """How a row mixes its experts."""
    if name in GATED:
        return Gated(len(experts), groups=[width] if width else [])
    return Online(len(experts))


@final
class Row:
    """One row: a mixture over some of the experts, its sums (all, recent, by band) and its time."""

    def __init__(self, name: str, experts: Sequence[str], width: int = 0) -> None:
        """A `width` is that of the states; a gated row without it looks at its own past only."""
        self.name = name
        self.experts = tuple(experts)
        self._width = width if name in GATED else 0
        self.mixture: Mixture = new_mixture(name, self.experts, width)
        self.fitted: Fixed | None = None
        self.fitted_tally = Tally()
        self.tally = Tally()
        self.recent = Tally()
        self.bands = tuple(Tally() for _ in BANDS)
        self.seconds = 0.0
        self._weight_sums = np.zeros(len(self.experts))

    def columns(self, reading: Reading) -> Table:
        """This row's part of a reading's table."""
        return reading.table[:, [reading.experts.index(name) for name in self.experts]]

    def score(self, reading: Reading, columns: Table) -> Scored:
        """Mix this row's columns of a reading, and learn from them."""
        return self.mixture.score(columns, reading.hidden if self._width else None)

    def fit(self, table: Table, *, beside: bool = False) -> None:
        """Fix the weights at those that suit `table` best; `beside` keeps the online ones too."""
        fixed = Fixed(fit_weights(table, prior=1.0))
        if beside:
            self.fitted = fixed
        else:
            self.mixture = fixed

    def compare(self, columns: Table) -> None:
        """Count what the fitted weights would have given, where both are kept."""
        if self.fitted is not None:
            nats = surprise(self.fitted.score(columns).prob)
            self.fitted_tally.add(float(nats.sum()), len(nats), 0)

    def add(self, prob: Probs, weights: Table, characters: int, bands: Ids) -> None:
        """Count words that were scored."""
        nats = surprise(prob)
        total = float(nats.sum())
        self.tally.add(total, len(nats), characters)
        self.recent.add(total, len(nats), characters)
        self._weight_sums += weights.sum(axis=0)
        by_band = np.bincount(bands, nats, minlength=len(BANDS)).tolist()
        counts = np.bincount(bands, minlength=len(BANDS)).tolist()
        for tally, part, count in zip(self.bands, by_band, counts, strict=True):
            tally.add(float(part), count, 0)

    def start_stretch(self) -> None:
        """Begin `recent` anew."""
        self.recent = Tally()

    @property
    def mean_weights(self) -> Float[np.ndarray, " m"]:
        """The weights, averaged over all words scored."""
        return self._weight_sums / max(self.tally.tokens, 1)
