"""What comes next, by whose word, and from which passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from unbounded.corpus import detokenize
from unbounded.predict import Cache, OnlineModel
from unbounded.store import Store

BEFORE, AFTER = 12, 6
"""Words of a passage before and after the one that it speaks for."""


@dataclass(frozen=True)
class Passage:
    """A place that was read and speaks for a word; `weight` is its part of the probability."""

    word: str
    weight: float
    document: str
    line: int
    time: datetime
    text: str


@dataclass(frozen=True)
class Guess:
    """A word, its probability, the share of each expert in that, and what speaks for it."""

    word: str
    prob: float
    shares: dict[str, float]
    sources: tuple[Passage, ...]


@dataclass(frozen=True)
class Prediction:
    """The likeliest next words, and how likely a word is that was never seen."""

    words: tuple[Guess, ...]
    stranger: float
    weights: dict[str, float]
    """How far each expert is believed, here and now."""

    @property
    def sources(self) -> tuple[Passage, ...]:
        """The passages behind all of these words, the weightiest first."""
        every = (passage for guess in self.words for passage in guess.sources)
        return tuple(sorted(every, key=lambda passage: -passage.weight))


def predict(model: OnlineModel, store: Store, n: int, sources: int) -> Prediction:
    """The `n` likeliest next words of a model, with up to `sources` passages each."""
    known, hidden = len(model.vocabulary), model.hidden
    weights = model.mixture.weights_for(hidden[0])
    parts = [expert.predict(hidden).dense(known)[0] for expert in model.experts.values()]
    shares = np.stack(parts, axis=1) * weights
    probs = shares.sum(axis=1)
    best = np.argsort(-probs, kind="stable")[:n]
    votes = _votes(model, weights)
    guesses = []
    for number, word in zip(best.tolist(), model.vocabulary.decode(best), strict=True):
        by = dict(zip(model.experts, (shares[number] / probs[number]).tolist(), strict=True))
        found = votes.get(number, {})
        top = sorted(found, key=lambda entry: (-found[entry], -entry))[:sources]
        passages = _passages(store, word, top, [found[entry] for entry in top])
        guesses.append(Guess(word, float(probs[number]), by, passages))
    believed = dict(zip(model.experts, weights.tolist(), strict=True))
    return Prediction(tuple(guesses), max(0.0, 1.0 - float(probs.sum())), believed)


def _votes(model: OnlineModel, weights: np.ndarray) -> dict[int, dict[int, float]]:
    """By word, what each entry of the memories adds to its probability."""
    votes: dict[int, dict[int, float]] = {}
    for expert, weight in zip(model.experts.values(), weights.tolist(), strict=True):
        if isinstance(expert, Cache) and len(expert.memory):
            found, shares = expert.recall(model.hidden)
            for entry, word, share in zip(
                found.positions[0].tolist(),
                found.words[0].tolist(),
                shares[0].tolist(),
                strict=True,
            ):
                mine = votes.setdefault(word, {})
                mine[entry] = mine.get(entry, 0.0) + weight * share
    return votes


def _passages(
    store: Store, word: str, entries: Sequence[int], weights: Sequence[float]
) -> tuple[Passage, ...]:
    positions = store.ledger.positions_of(np.array(entries, np.int64))
    places = store.ledger.where(positions)
    return tuple(
        Passage(
            word,
            weight,
            place.document,
            place.line,
            datetime.fromtimestamp(place.time, UTC),
            " / ".join(detokenize(store.words(at - BEFORE, at + AFTER + 1)).split("\n")).strip(
                " /"
            ),
        )
        for at, place, weight in zip(positions.tolist(), places, weights, strict=True)
    )
