"""What comes next by a memory on shards, and from which passages, wherever they lie."""

from collections.abc import Sequence
from datetime import UTC, datetime

from unbounded.cluster import Sharded
from unbounded.corpus import Splitter
from unbounded.experts import Cache
from unbounded.memory.prediction import AFTER, BEFORE, Guess, Passage, Prediction, likeliest
from unbounded.model import OnlineModel
from unbounded.types import Probs


def foreseen(
    model: OnlineModel, memory: Sharded, n: int, sources: int, splitter: Splitter
) -> Prediction:
    """The `n` likeliest next words of a model, with up to `sources` passages each."""
    weights = model.mixture.weights_for(model.hidden[0])
    believed = dict(zip(model.experts, weights.tolist(), strict=True))["unbounded"]
    told = _votes(model) if sources else {}

    def guess(number: int, word: str, prob: float, by: Probs) -> Guess:
        found = told.get(number, {})
        top = sorted(found, key=lambda entry: (-found[entry], -entry))[:sources]
        parts = [believed * found[entry] for entry in top]
        shown = splitter.shown(word)
        passages = _passages(memory, shown, top, parts, splitter)
        return Guess(shown, prob, dict(zip(model.experts, by.tolist(), strict=True)), passages)

    return likeliest(model, weights, n, guess)


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
