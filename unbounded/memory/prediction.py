"""What comes next, by whose word and from which passages; and how likely what came was."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter
from unbounded.corpus.tokenizer import may_go_on
from unbounded.evaluation.metrics import surprise
from unbounded.experts import Cache, NGram
from unbounded.memory.sampling import SHOWN
from unbounded.mixture import Online
from unbounded.model import OnlineModel
from unbounded.model import Reading as BlockReading
from unbounded.store import TextLog
from unbounded.types import Ids, Probs, Table

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
    """As it was written, lines parted by " / "; where that is not known, as it is split."""
    start: int
    end: int
    """Where the word stands in the text."""


@dataclass(frozen=True)
class Guess:
    """A word, its probability, the share of each expert in that, and what speaks for it."""

    word: str
    prob: float
    shares: dict[str, float]
    sources: tuple[Passage, ...]
    written: str
    """The word as it is written in the first of the passages; a line feed for a sentence end."""


@dataclass(frozen=True)
class Prediction:
    """The likeliest next words, and how likely a word is that was never seen.

    The probabilities of `words`, `rest` and `oov` sum to one.
    """

    words: tuple[Guess, ...]
    oov: float
    rest: float
    """Of all words together that are known and not among these."""
    weights: dict[str, float]
    """How far each expert is believed, here and now."""

    @property
    def sources(self) -> tuple[Passage, ...]:
        """The passages behind all of these words, the weightiest first."""
        every = (passage for guess in self.words for passage in guess.sources)
        return tuple(sorted(every, key=lambda passage: -passage.weight))


def predict(
    model: OnlineModel, log: TextLog, n: int, prefix: str, sources: int, splitter: Splitter
) -> Prediction:
    """The `n` likeliest next words of a model, with up to `sources` passages each."""
    weights = model.mixture.weights_for(model.hidden[0])
    votes = _votes(model, weights) if sources else {}
    said = [expert.predict(model.hidden) for expert in model.experts.values()]
    # Counted behind the experts: a memory that others write may know words that are new to us.
    known = len(model.vocabulary)
    shares = np.stack([one.dense(known)[0] for one in said], axis=1) * weights
    probs = shares.sum(axis=1)
    best = _best(probs, n) if not prefix else _beginning(model, probs, n, prefix, splitter)
    explained = _Explained(model, log, sources, splitter)
    guesses = [
        explained.guess(number, word, float(probs[number]), shares[number] / probs[number], votes)
        for number, word in zip(best.tolist(), model.vocabulary.decode(best), strict=True)
    ]
    believed = dict(zip(model.experts, weights.tolist(), strict=True))
    oov = max(0.0, 1.0 - float(probs.sum()))
    rest = max(0.0, 1.0 - oov - sum(guess.prob for guess in guesses))
    return Prediction(tuple(guesses), oov, rest, believed)


def explain(model: OnlineModel, log: TextLog, word: str, sources: int, splitter: Splitter) -> Guess:
    """One word, as it stands in the text, as a guess: how likely it is now, and why."""
    reading, _ = model.peek([word])
    by = reading.table[0] * reading.weights[0] / reading.prob[0]
    votes = _votes(model, reading.weights[0]) if sources else {}
    number, prob = int(reading.ids[0]), float(reading.prob[0])
    return _Explained(model, log, sources, splitter).guess(number, word, prob, by, votes)


_Votes = dict[int, dict[int, float]]
"""By word, what each entry adds to its probability."""


@final
@dataclass(frozen=True)
class _Explained:
    """Adds to words each expert's share in them, and the passages that speak for them."""

    model: OnlineModel
    log: TextLog
    sources: int
    splitter: Splitter

    def guess(self, number: int, word: str, prob: float, by: Probs, votes: _Votes) -> Guess:
        """A word of the model, the share of each expert in it, and what entries say."""
        shown = self.splitter.shown(word)[:SHOWN]
        shares = dict(zip(self.model.experts, by.tolist(), strict=True))
        mine = votes.get(number, {})
        if self.sources:
            _add_counted(self.model, number, shares, prob, mine)
        top = sorted(mine, key=lambda entry: (-mine[entry], -entry))[: self.sources]
        weights = {entry: mine[entry] for entry in top}
        passages = tuple(self._passages(shown, weights)) if weights else ()
        written = "\n" if word == SENTENCE_END else shown
        if passages and word != SENTENCE_END:
            first = passages[0]
            written = first.text[first.start : first.end] or shown
        return Guess(shown, prob, shares, passages, written)

    def _passages(self, shown: str, weights: dict[int, float]) -> Iterator[Passage]:
        """What stands around each entry."""
        catalog = self.log.catalog
        places = catalog.positions_of(np.array(list(weights), np.int64)).tolist()
        around = [
            np.arange(max(at - BEFORE, 0), min(at + AFTER + 1, catalog.positions)) for at in places
        ]
        found = iter(catalog.where(np.concatenate(around)))
        for weight, at, near in zip(weights.values(), places, around, strict=True):
            by_place = dict(zip(near.tolist(), found, strict=False))
            where = by_place[at]
            # What stands in another file is not what this one says.
            name = _file(where.document)
            first, last = at, at + 1
            while first > near[0] and _file(by_place[first - 1].document) == name:
                first -= 1
            while last <= near[-1] and _file(by_place[last].document) == name:
                last += 1
            number = int(catalog.kept(first, at - first).sum())
            words, forms = self.log.words(first, last), self.log.forms(first, last)
            line = _line(self.splitter, words, forms, number)
            time = datetime.fromtimestamp(where.time, UTC)
            yield Passage(shown, weight, where.document, where.line, time, *line)


def _file(document: str) -> str:
    """The file that a document is of, whatever part of it."""
    return re.sub(r"#\d+$", "", document)


def _beginning(
    model: OnlineModel, probs: Probs, n: int, prefix: str, splitter: Splitter
) -> np.ndarray:
    """The `n` likeliest of the words that begin so."""
    words = model.vocabulary.decode(np.arange(len(probs)))
    fitting = [i for i, word in enumerate(words) if splitter.shown(word).startswith(prefix)]
    there = np.array(fitting, np.int64)
    best: np.ndarray = there[_best(probs[there], n)]
    return best


def _best(probs: Probs, n: int) -> np.ndarray:
    """The `n` likeliest, of two as likely the older word first."""
    if n < len(probs):
        # All that could be among them; to sort every word takes longer than the network does.
        there = np.flatnonzero(probs >= np.partition(probs, len(probs) - n)[len(probs) - n])
    else:
        there = np.arange(len(probs))
    best: np.ndarray = there[np.argsort(-probs[there], kind="stable")][:n]
    return best


def _votes(model: OnlineModel, weights: np.ndarray) -> _Votes:
    """What the entries that caches found say."""
    votes: _Votes = {}
    for expert, weight in zip(model.experts.values(), weights.tolist(), strict=True):
        if isinstance(expert, Cache) and len(expert.datastore):
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


def _add_counted(
    model: OnlineModel, word: int, by: dict[str, float], prob: float, votes: dict[int, float]
) -> None:
    """What n-grams say of a word comes from where it followed the same words before."""
    cache = model.experts["unbounded"]
    assert isinstance(cache, Cache)
    for name, expert in model.experts.items():
        if isinstance(expert, NGram):
            places = occurrences(cache.datastore.words, expert.context, word)
            for entry in places.tolist():
                votes[entry] = votes.get(entry, 0.0) + prob * by[name] / len(places)


def occurrences(words: np.ndarray, context: Ids, word: int) -> np.ndarray:
    """Where a word came after as much of a context as it ever did, at least its last word.

    >>> occurrences(np.array([1, 2, 3, 0, 2, 3, 4, 3]), np.array([0, 2]), 3).tolist()
    [5]
    >>> occurrences(np.array([1, 2, 3, 0, 2, 3, 4, 3]), np.array([7, 2]), 3).tolist()
    [2, 5]
    """
    found = np.flatnonzero(words == word)
    longest = found[:0]
    for back, before in enumerate(context[::-1].tolist(), 1):
        found = found[found >= back]
        found = found[words[found - back] == before]
        if not len(found):
            break
        longest = found
    return longest


def _line(
    splitter: Splitter, words: Sequence[str], forms: Sequence[str] | None, at: int
) -> tuple[str, int, int]:
    """Words as one line, each as much of it as is shown, and where the one that is meant stands.

    The `forms` are how they were written, if that is known.
    """
    words = [word[:SHOWN] for word in words]
    if forms is not None:
        written, long = [], False
        for word, form in zip(words, forms, strict=True):
            # Pieces of a word that is too long are words: no answer is longer for it.
            shown = f" {form.lstrip()}" if long else form
            written.append("\n" if word == SENTENCE_END else shown[-SHOWN:])
            long = may_go_on(word)
        parts = ["".join(written[:at]), written[at], "".join(written[at + 1 :])]
    else:
        before, until = splitter.text(words[:at]), splitter.text(words[: at + 1])
        parts = [before, until[len(before) :], splitter.text(words)[len(until) :]]
    left, own, right = (" / ".join(part.split("\n")) for part in parts)
    left, right = left.lstrip(" /"), right.rstrip(" /")
    if not left:
        own = own.lstrip()
    start = len(left) + len(own) - len(own.lstrip())
    return f"{left}{own}{right}".rstrip(), start, len(left) + len(own.rstrip())


# A text that is scored.


def peeked(model: OnlineModel, blocks: Iterable[Sequence[str]]) -> Iterator[BlockReading]:
    """Score words without learning any of them, a block at a time."""
    for words in blocks:
        reading, model = model.peek(words)
        yield reading


@final
class NetworkAlone:
    """The network without a memory, with a share for OOV words that it learns as it goes."""

    def __init__(self) -> None:
        self._mixture = Online(2)

    def score(self, experts: Sequence[str], table: Table) -> Probs:
        """What it would have said of each word, from the columns of all experts."""
        # Words that it does not know are even, or spelled.
        oov = "spelling" if "spelling" in experts else "uniform"
        columns = [experts.index("static"), experts.index(oov)]
        return self._mixture.score(np.ascontiguousarray(table[:, columns])).prob


@dataclass(frozen=True)
class Reading:
    """Words, and what the probability of each was just before it came, in all and by expert."""

    words: Sequence[str]
    prob: Probs
    experts: tuple[str, ...]
    table: Table
    characters: int
    """How many characters the words stand for."""

    @staticmethod
    def joined(parts: Sequence["Reading"]) -> "Reading":
        """One after another, at least one."""
        return Reading(
            [word for part in parts for word in part.words],
            np.concatenate([part.prob for part in parts]),
            parts[0].experts,
            np.concatenate([part.table for part in parts]),
            sum(part.characters for part in parts),
        )

    @property
    def logprobs(self) -> Probs:
        """The natural logarithm of each word's probability."""
        return -self.nats

    @property
    def nats(self) -> Probs:
        """The surprise of each word: minus its log-probability."""
        return surprise(self.prob)

    @property
    def perplexity(self) -> float:
        """The exponential of the mean surprise."""
        return float(np.exp(self.nats.mean()))

    @property
    def bits_per_character(self) -> float:
        """The surprise of all words in bits, over their characters."""
        return float(self.nats.sum() / math.log(2) / self.characters)

    @property
    def by_expert(self) -> Mapping[str, Probs]:
        """The log-probability that each expert alone gave each word."""
        return {name: -surprise(self.table[:, i]) for i, name in enumerate(self.experts)}

    @property
    def static(self) -> Probs:
        """What the network alone would have said of each word."""
        return NetworkAlone().score(self.experts, self.table)
