"""A referee for online language models, anybody's: are these scores what they claim to be?

A score is a code length only if every distribution sums to at most one, and an online one only if
no word's score depends on that word or a later one. Five checks on a text find who breaks that:

    causal           other words later, or the same in another order: earlier scores stay
    normalized       the probabilities of a vocabulary's words in one place sum to at most one
    scored first     a word's score is what was said of it before it was shown
    single pass      a second, fresh run knows no more than the first
    blocks           words one by one get what they get together

What is audited is made anew for each run. It is an `Online` object, made by a callable without
arguments, or a function from a text's words to the natural logarithm of each one's probability.
"""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from unbounded.errors import ModelError, SettingError
from unbounded.types import Probs

TOLERANCE = 1e-3
"""Nats that a score may differ by, and parts of one that a sum may be above it: rounding."""


@runtime_checkable
class Online(Protocol):
    """What reads on. If it can, it also has `predict(words)`: the same for words that might come
    next, each by itself, which teaches nothing."""

    def score(self, words: Sequence[str]) -> Sequence[float]:
        """The natural logarithm of each word's probability just before it came; learns them."""


Scores = Callable[[Sequence[str]], Sequence[float]]
"""A function from the words of a text to their scores."""


@dataclass(frozen=True)
class Finding:
    """One check: kept, broken, or None if it cannot be told; and what was seen."""

    check: str
    kept: bool | None
    evidence: str


@final
class Audit:
    """The five checks of one model on one text."""

    def __init__(
        self,
        audited: Callable[[], Online] | Scores,
        words: Sequence[str],
        vocabulary: Iterable[str] | None = None,
        *,
        samples: int = 300,
        seed: int = 1,
        tolerance: float = TOLERANCE,
        disjoint: bool = False,
    ) -> None:
        """`vocabulary` is what to sum over, by default the words of the text; `samples` at most.

        `disjoint` is for models of strings, to whom a word is also the beginning of longer ones:
        then only words are summed over that begin no other.
        """
        if len(words) < 16:
            raise SettingError(f"a text of {len(words)} words; at least 16 are needed")
        self._make = _maker(audited)
        self._words = list(words)
        self._vocabulary = sorted(set(vocabulary or words))
        if disjoint:
            self._vocabulary = _beginning_none(self._vocabulary)
        self._samples, self._tolerance = samples, tolerance
        self._random = np.random.default_rng(seed)
        self._first: Probs = np.empty(0)

    def run(self) -> Iterator[Finding]:
        """Each check with its evidence, one after another."""
        self._first = self._scores(self._words)
        yield self._causal()
        yield self._normalized()
        yield self._scored_first()
        yield self._single_pass()
        yield self._blocks()

    def _scores(self, words: Sequence[str], *, one_by_one: bool = False) -> Probs:
        """All scores of a fresh run; NaN where a model has none, as some have of a first word."""
        online = self._make()
        # A function of texts is asked for all of it at every step: fewer will do.
        steps = 16 if isinstance(online, _Text) else len(words)
        parts = [part.tolist() for part in np.array_split(np.array(words, object), steps)]
        parts = [part for part in parts if part] if one_by_one else [list(words)]
        found = [score for part in parts for score in online.score(part)]
        if len(found) != len(words):
            raise ModelError(
                f"{len(found)} scores came for {len(words)} words; one for each is needed"
            )
        scores = np.array(found, np.float64)
        if (scores > self._tolerance).any():
            at = int(np.nanargmax(scores))
            raise ModelError(
                f"the score of word {at + 1} is {scores[at]:.3f}; natural logarithms of "
                "probabilities are needed, which are at most 0"
            )
        return scores

    def _apart(self, one: Probs, other: Probs) -> tuple[float, int]:
        """How far two runs are apart at most, in nats, and where."""
        far = np.nan_to_num(np.abs(_gained(one, other)), nan=0.0, posinf=math.inf)
        at = int(far.argmax())
        return float(far[at]), at

    def _finding(self, check: str, far: float, broken: str, kept: str) -> Finding:
        """Broken where scores are further apart than rounding takes them."""
        fine = far <= self._tolerance
        return Finding(check, fine, kept if fine else broken)

    def _causal(self) -> Finding:
        for cut in (len(self._words) // 3, 2 * len(self._words) // 3):
            past, future = self._words[:cut], self._words[cut:]
            shuffled = [future[i] for i in self._random.permutation(len(future))]
            new = [f"{''.join(chr(97 + int(d)) for d in str(i))}qx" for i in range(len(future))]
            for how, instead in (("shuffled", shuffled), ("of new words", new), ("cut off", [])):
                far, at = self._apart(self._scores([*past, *instead])[:cut], self._first[:cut])
                if far > self._tolerance:
                    return Finding(
                        "causal",
                        False,
                        f"with the future from word {cut + 1} on {how}, the score of word {at + 1} "
                        f"({past[at]!r}) moves by {far:.3g} nats",
                    )
        return Finding("causal", True, "other futures at 2 places: no earlier score moves")

    def _normalized(self) -> Finding:
        worst, how = -math.inf, ""
        for place in (0, 7, len(self._words) // 2, len(self._words) - 1):
            total, error, count = self._sum(place)
            if total - 4 * error > worst:
                worst = total - 4 * error
                sure = f" ± {error:.2g}" if error else ""
                how = f"{count:,} words in the place of word {place + 1}: {total:.6g}{sure}"
        kept = worst <= 1 + self._tolerance
        return Finding("normalized", kept, f"the largest sum at 4 places is over {how}")

    def _sum(self, place: int) -> tuple[float, float, int]:
        """The sum of a vocabulary's probabilities in a place: its standard error, words asked."""
        words, past = self._vocabulary, self._words[:place]
        if len(words) <= self._samples:
            return float(np.exp(self._asked(past, words)).sum()), 0.0, len(words)
        # Half of the draws as words came so far, half even: a sum is found without all of it.
        counts = Counter(past)
        came = np.array([counts[word] for word in words], np.float64)
        chance = came / max(came.sum(), 1.0) + 1 / len(words)
        chance /= chance.sum()
        drawn = self._random.choice(len(words), self._samples, p=chance)
        different, place_of = np.unique(drawn, return_inverse=True)
        probs = np.exp(self._asked(past, [words[i] for i in different]))[place_of]
        ratios = probs / chance[drawn]
        error = float(ratios.std(ddof=1) / math.sqrt(len(ratios)))
        return float(ratios.mean()), error, len(different)

    def _asked(self, past: Sequence[str], words: Sequence[str]) -> Probs:
        """What each word's score would be behind the past."""

        def behind() -> Any:
            online = self._make()
            if past:
                online.score(past)
            return online

        predict = getattr(behind(), "predict", None)
        found = [behind().score([word])[0] for word in words] if predict is None else predict(words)
        # Who has no score for a first word says nothing about it.
        return np.nan_to_num(np.array(found, np.float64), nan=-math.inf)

    def _scored_first(self) -> Finding:
        online = self._make()
        if getattr(online, "predict", None) is None:
            return Finding(
                "scored first", None, "it cannot be asked without being told: see the sums"
            )
        worst, at = 0.0, 0
        step = max(1, len(self._words) // 32)
        for start in range(0, len(self._words), step):
            part = self._words[start : start + step]
            said = float(online.predict(part[:1])[0])
            far = abs(said - float(online.score(part)[0]))
            worst, at = (far, start) if far > worst else (worst, at)
        return self._finding(
            *("scored first", worst),
            f"word {at + 1} ({self._words[at]!r}) scores {worst:.3g} nats apart from what was said "
            "of it before",
            "what is said of a word is its score when it comes",
        )

    def _single_pass(self) -> Finding:
        again = self._scores(self._words)
        far, at = self._apart(again, self._first)
        gain = float(np.nansum(_gained(again, self._first)))
        return self._finding(
            *("single pass", far),
            f"a second run differs by {far:.3g} nats at word {at + 1}, {gain:+.3g} in all: "
            "something is kept between runs, or drawn at random",
            "a second run says the same",
        )

    def _blocks(self) -> Finding:
        far, at = self._apart(self._scores(self._words, one_by_one=True), self._first)
        return self._finding(
            *("blocks", far),
            f"word {at + 1} ({self._words[at]!r}) by itself scores {far:.3g} nats apart from what "
            "it has in a block",
            "one by one, words get what they get together",
        )


def _gained(one: Probs, other: Probs) -> Probs:
    """Nats between two runs; none where both hold a word for impossible."""
    gained: Probs = np.subtract(one, other, out=np.zeros(len(one)), where=one != other)
    return gained


@final
class _Text:
    """A function of whole texts as one that reads on: asked for all that came, each time."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._past: list[str] = []

    def score(self, words: Sequence[str]) -> Sequence[float]:
        """What the function gives the last words of all that came."""
        self._past += words
        return list(self._scores(self._past))[-len(words) :]


def _maker(audited: Callable[..., Any]) -> Callable[[], Any]:
    """What makes a fresh one for each run."""
    parameters = inspect.signature(audited).parameters.values()
    if any(one.default is one.empty and one.kind < one.KEYWORD_ONLY for one in parameters):
        return lambda: _Text(audited)
    made = audited()
    if not isinstance(made, Online):
        raise ModelError(
            f"{audited!r} makes a {type(made).__name__}, which has no method 'score'; it must take "
            "words and give the natural logarithm of each one's probability"
        )
    return audited


def _beginning_none(words: Sequence[str]) -> list[str]:
    """Of sorted words those that are no beginning of another.

    >>> _beginning_none(["a", "an", "ant", "be", "bed", "cat"])
    ['ant', 'bed', 'cat']
    """
    return [
        word
        for word, following in zip(words, [*words[1:], ""], strict=True)
        if not following.startswith(word)
    ]
