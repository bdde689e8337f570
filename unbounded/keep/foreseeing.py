"""What comes next by a memory on shards, and from which passages, wherever they lie."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from unbounded.cluster import Sharded
from unbounded.corpus import Splitter
from unbounded.keep.prediction import AFTER, BEFORE, Guess, Passage, Prediction
from unbounded.predict import Cache, OnlineModel


def foreseen(
    model: OnlineModel, memory: Sharded, n: int, sources: int, splitter: Splitter
) -> Prediction:
    """The `n` likeliest next words of a model, with up to `sources` passages each."""
    hidden = model.hidden
    weights = model.mixture.weights_for(hidden[0])
    told = _votes(model) if sources else {}
    said = [expert.predict(hidden) for expert in model.experts.values()]
    # Asked behind the experts: a memory that others write may know words that are new to us.
    known = len(model.vocabulary)
    shares = np.stack([one.dense(known)[0] for one in said], axis=1) * weights
    probs = shares.sum(axis=1)
    best = np.argsort(-probs, kind="stable")[:n]
    believed = dict(zip(model.experts, weights.tolist(), strict=True))
    guesses = []
    for number, word in zip(best.tolist(), model.vocabulary.decode(best), strict=True):
        by = dict(zip(model.experts, (shares[number] / probs[number]).tolist(), strict=True))
        found = told.get(number, {})
        top = sorted(found, key=lambda entry: (-found[entry], -entry))[:sources]
        parts = [believed["unbounded"] * found[entry] for entry in top]
        shown = splitter.shown(word)
        passages = _passages(memory, shown, top, parts, splitter)
        guesses.append(Guess(shown, float(probs[number]), by, passages))
    return Prediction(tuple(guesses), max(0.0, 1.0 - float(probs.sum())), believed)


def _votes(model: OnlineModel) -> dict[int, dict[int, float]]:
    """By word, the share of each entry of the shared memory that speaks for it."""
    votes: dict[int, dict[int, float]] = {}
    cache = model.experts["unbounded"]
    assert isinstance(cache, Cache)
    if len(cache.memory):
        found, shares = cache.recall(model.hidden)
        rows = found.positions[0].tolist(), found.words[0].tolist(), shares[0].tolist()
        for entry, word, share in zip(*rows, strict=True):
            votes.setdefault(word, {})[entry] = share
    return votes


def _passages(
    memory: Sharded,
    word: str,
    entries: Sequence[int],
    weights: Sequence[float],
    splitter: Splitter,
) -> tuple[Passage, ...]:
    found = []
    for place, weight in zip(memory.where(entries), weights, strict=True):
        first, last = place.position - BEFORE, place.position + AFTER + 1
        lines = splitter.text(memory.words_of(place.document, first, last)).split("\n")
        when = datetime.fromtimestamp(place.time, UTC)
        text = " / ".join(lines).strip(" /")
        found.append(Passage(word, weight, place.document, place.line, when, text))
    return tuple(found)
