"""The rows of a table: which experts each mixes, and what each has scored so far."""

from collections.abc import Sequence
from typing import final

import numpy as np

from unbounded.evaluation.metrics import BANDS, Tally, surprise
from unbounded.experts.offline import SHARE
from unbounded.mixture import Fixed, Gated, Mixture, Online, Scored, fit_weights
from unbounded.model import Reading
from unbounded.shapes import Float
from unbounded.types import Ids, Probs, Table

ROWS: dict[str, tuple[str, ...]] = {
    "static": ("static", "uniform"),
    "unigram": ("static", "uniform", "unigram"),
    "local": ("static", "uniform", "local"),
    "unbounded": ("static", "uniform", "unbounded"),
    "full": (
        *("static", "uniform", "adapted", "unigram", "ngram", "train_ngram"),
        *("cache_128", "cache_1024", "unbounded"),
    ),
    "adapted": ("static", "uniform", "adapted"),
    "dynamic": ("dynamic", "uniform"),
    "knnlm": ("static", "knn"),
    "knnlm-tuned": ("static", "tuned"),
}
"""The paper's four rows and all experts together; "we always interpolate … with the uniform".

`adapted` is the output layer learning alone, and `dynamic` a baseline: the whole network learning.
`knnlm` is another, with a memory filled beforehand: as published, or tuned on a text for that.
"""

OFFLINE = {"knnlm": "knn", "knnlm-tuned": "tuned"}
"""Rows with a memory that is filled before the first word that is scored, and whose that is."""

USUAL = ("static", "unigram", "local", "unbounded", "full")
"""The rows of an evaluation unless others are asked for."""

TAUGHT = ("train_ngram",)
"""Experts that have read the training text first, which not every model keeps."""

PROTOCOLS = ("paper", "open")
"""`paper`: OOV words come from a uniform over training and test words. `open`: nothing of the
future is known, and OOV words are spelled."""

GATED = ("full",)
"""Rows whose weights depend on the state before each word; the others learn one set of weights."""

STATELESS = frozenset({"uniform", "unigram", "ngram", "dynamic"})
"""Experts that never look at the frozen network's states."""

TITLES = {
    "static": "static",
    "unigram": "static + unigram",
    "local": "static + local cache",
    "unbounded": "static + unbounded cache",
    "full": "all together",
    "adapted": "static + adapted output",
    "dynamic": "dynamic evaluation",
    "knnlm": "kNN-LM as published",
    "knnlm-tuned": "kNN-LM tuned",
}
"""What people call them."""


def experts_for(
    row: str, protocol: str = "paper", *, text: bool = True, closed: bool = False
) -> tuple[str, ...]:
    """The experts of a row that can be had, under a protocol, with the training text or without.

    With a `closed` vocabulary there are no OOV words: the network alone is a row.

    >>> experts_for("unigram", "open")
    ('static', 'spelling', 'unigram')
    """
    if closed and row == "static":
        return ("static",)
    swapped = {"uniform": "spelling"} if protocol == "open" and not closed else {}
    return tuple(swapped.get(name, name) for name in ROWS[row] if text or name not in TAUGHT)


def new_mixture(name: str, experts: Sequence[str], width: int) -> Mixture:
    """How a row mixes its experts."""
    if name in OFFLINE:
        return Fixed(np.array([1 - SHARE, SHARE]))
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
        self._seen: list[Table] = []
        self._tops = 0.0
        self.tally = Tally()
        self.recent = Tally()
        self.bands = tuple(Tally() for _ in BANDS)
        self.seconds = 0.0
        self._weight_sums = np.zeros(len(self.experts))

    @property
    def parts(self) -> tuple[str, ...]:
        """Whose time it costs, alone: that of its experts, and of the network if one needs it."""
        alone = self._width == 0 and STATELESS.issuperset(self.experts)
        return self.experts if alone else ("network", *self.experts)

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

    def share(self, part: float) -> None:
        """Fix the weight of the second of two experts."""
        self.mixture = Fixed(np.array([1 - part, part]))

    def compare(self, columns: Table) -> None:
        """Count what the fitted weights would have given, where both are kept."""
        if self.fitted is not None:
            nats = surprise(self.fitted.score(columns).prob)
            self.fitted_tally.add(float(nats.sum()), len(nats), 0)
            # Each row as parts of its largest: what a short float cannot hold is kept beside.
            top = columns.max(axis=1)
            self._seen.append((columns / top[:, None]).astype(np.float32))
            self._tops += float(surprise(top).sum())

    def in_hindsight(self) -> float:
        """The perplexity of the best fixed weights for the very words that were compared.

        Nobody can have them beforehand; they are what learned weights are measured by.
        """
        table = np.concatenate(self._seen)
        return float(np.exp((surprise(table @ fit_weights(table)).sum() + self._tops) / len(table)))

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
