"""The rows of a table: which experts each mixes, what it has scored so far, which words gained."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter, Tokenizer
from unbounded.errors import SettingError
from unbounded.evaluation.metrics import BANDS, Tally, surprise
from unbounded.mixture import Fixed, Mixture, Scored, fit_weights
from unbounded.model import Reading
from unbounded.presets import GATED, PRESETS, PROTOCOLS, experts_for, new_mixture
from unbounded.shapes import Float
from unbounded.types import Ids, Probs, Table

USUAL = ("static", "unigram", "local", "unbounded", "full")
"""The rows of an evaluation unless others are asked for."""

STATELESS = frozenset({"uniform", "unigram", "ngram", "ngrams", "dynamic"})
"""Experts that never look at the frozen network's states."""

TITLES = {
    "static": "static",
    "unigram": "static + unigram",
    "local": "static + local cache",
    "unbounded": "static + unbounded cache",
    "full": "all together",
    "adapted": "static + adapted output",
    "dynamic_head": "static + dynamic output",
    "dynamic": "dynamic evaluation",
    "knnlm": "kNN-LM as published",
    "knnlm-tuned": "kNN-LM tuned",
}
"""What people call them."""


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

    def take(self, reading: Reading, bands: Ids, characters: int) -> Scored:
        """Score a block and count its words.

        The time is that of its own experts, of its mixture and, if it uses it, of the network, as
        if it had been alone.
        """
        began = time.perf_counter()
        columns = self.columns(reading)
        scored = self.score(reading, columns)
        self.seconds += time.perf_counter() - began
        self.seconds += sum(reading.seconds[name] for name in self.parts)
        self.compare(columns)
        self._add(scored.prob, scored.weights, characters, bands)
        return scored

    def _add(self, prob: Probs, weights: Table, characters: int, bands: Ids) -> None:
        nats = surprise(prob)
        total = float(nats.sum())
        self.tally.add(total, len(nats), characters)
        self.recent.add(total, len(nats), characters)
        self._weight_sums += weights.sum(axis=0)
        by_band = np.bincount(bands, nats, minlength=len(BANDS)).tolist()
        counts = np.bincount(bands, minlength=len(BANDS)).tolist()
        for tally, part, count in zip(self.bands, by_band, counts, strict=True):
            tally.add(float(part), count, 0)

    @property
    def mean_weights(self) -> Float[np.ndarray, " m"]:
        """The weights, averaged over all words scored."""
        return self._weight_sums / max(self.tally.tokens, 1)


@dataclass(frozen=True)
class ScoredBlock:
    """A block with what every row gave its words."""

    reading: Reading
    bands: Ids
    probs: dict[str, Probs]
    weights: dict[str, Table]
    row_experts: dict[str, tuple[str, ...]]


Watcher = Callable[[ScoredBlock], None]
"""Told of each block once it is scored."""


def make_rows(
    names: Sequence[str],
    width: int = 0,
    protocol: str = "paper",
    *,
    text: bool = True,
    closed: bool = False,
) -> list[Row]:
    """Rows by name, in the order asked for, over states of a width, under one protocol.

    Without a `text` that the network was trained on, no expert has read it. See `experts_for`.
    """
    if protocol not in PROTOCOLS:
        raise SettingError(f"protocol {protocol!r} is unknown; use {' or '.join(PROTOCOLS)}")
    for name in names:
        if name not in PRESETS:
            raise SettingError(f"row {name!r} is unknown; choose from {', '.join(PRESETS)}")
    if not names or len(set(names)) < len(names):
        raise SettingError(f"rows {', '.join(names)!r}; name each row once, and at least one")
    return [
        Row(name, experts_for(name, protocol, text=text, closed=closed), width) for name in names
    ]


def experts_of(rows: Iterable[Row]) -> list[str]:
    """Every expert that some row needs, once; those of `PRESETS["full"]` first, in its order."""
    needed = set(chain.from_iterable(row.experts for row in rows))
    each = product(PROTOCOLS, (True, False))
    places = zip(*(experts_for("full", of, text=text) for of, text in each), strict=True)
    ordered = dict.fromkeys(chain(chain.from_iterable(places), *PRESETS.values()))
    return [name for name in ordered if name in needed]


@final
class WordCount:
    """How many words, as our tokenizer counts them, the pieces read so far stand for.

    Sentence ends are counted, as everywhere; so perplexities a word can be compared with those of
    a model of words.
    """

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter
        self._tokenizer = Tokenizer()
        self._whole = 0
        self._line: list[str] = []

    def __call__(self, block: ScoredBlock) -> None:
        """Count a block."""
        self.add(block.reading.words)

    def add(self, pieces: Sequence[str]) -> None:
        """Count pieces; a line that has not ended is kept until it does."""
        for piece in pieces:
            if piece == SENTENCE_END:
                self._whole += self._words() + 1
                self._line = []
            else:
                self._line.append(piece)

    @property
    def total(self) -> int:
        """The words, with those of a line that has not ended."""
        return self._whole + (self._words() if self._line else 0)

    def _words(self) -> int:
        return len(self._tokenizer.words(self._splitter.text(self._line)))


def whole_words(pieces: Sequence[str], splitter: Splitter) -> list[str]:
    """The words that pieces make up, one for each of `starts`; words stay as they are."""
    starts = splitter.starts(pieces).tolist()
    return [
        pieces[a]
        if pieces[a] == SENTENCE_END or splitter.parted
        else splitter.text(pieces[a:b]).strip() or "␣"
        for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)
    ]


@dataclass(frozen=True)
class Gain:
    """One word: how many nats it saved in all (negative: cost), over how many occurrences."""

    word: str
    nats: float
    times: int


@final
class Gains:
    """Which words one row gained over another, and lost: nats a word type, summed.

    What a word gained is the sum over its pieces; those after the last beginning of a word wait
    for the next block.
    """

    def __init__(self, base: str, other: str, splitter: Splitter = Tokenizer()) -> None:
        self.base = base
        self.other = other
        self._splitter = splitter
        self._pieces: list[str] = []
        self._waiting = np.zeros(0)
        self._nats: defaultdict[str, float] = defaultdict(float)
        self._times: Counter[str] = Counter()

    def __call__(self, block: ScoredBlock) -> None:
        """Add up a block."""
        before, after = surprise(block.probs[self.base]), surprise(block.probs[self.other])
        # Where both are infinite nothing is gained.
        gained = np.subtract(before, after, out=np.zeros(len(before)), where=before != after)
        words: Sequence[str] = block.reading.words
        if not self._splitter.parted:
            words, gained = self._together(words, gained)
        for word, nats in zip(words, gained.tolist(), strict=True):
            self._nats[word] += nats
        self._times.update(words)

    def most(self, count: int, *, lost: bool = False) -> list[Gain]:
        """The words with the largest sums; with `lost`, those with the most negative ones."""
        sign = -1 if lost else 1
        found = [
            Gain(word, nats, self._times[word])
            for word, nats in self._nats.items()
            if sign * nats > 0 and word != SENTENCE_END
        ]
        # A stable order of first sight among equals keeps reports the same from run to run.
        return sorted(found, key=lambda gain: -sign * gain.nats)[:count]

    def _together(self, pieces: Sequence[str], gained: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The words that are complete, and what each gained."""
        pieces, gained = [*self._pieces, *pieces], np.concatenate([self._waiting, gained])
        starts = self._splitter.starts(pieces)
        last = int(starts[-1]) if len(starts) else 0
        self._pieces, self._waiting = pieces[last:], gained[last:]
        if not last:
            return [], gained[:0]
        sums: np.ndarray = np.add.reduceat(gained[:last], starts[:-1])
        return whole_words(pieces[:last], self._splitter), sums
