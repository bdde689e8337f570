"""Online models of words: an honest one, and others that break a rule each, as contests saw."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import final

SIZE = 1 << 20
"""Words that there might be; a word never read has one part in so many of the escape."""


@final
class Honest:
    """Bigrams, unigrams and a uniform over all words there might be, counted as they come."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.last = ""

    def prob(self, word: str) -> float:
        total = self.words.total()
        unigram = self.words[word] / total if total else 0.0
        before = sum(count for pair, count in self.pairs.items() if pair[0] == self.last)
        bigram = self.pairs[self.last, word] / before if before else unigram
        return 0.5 * bigram + 0.4 * unigram + 0.1 / SIZE

    def learn(self, word: str) -> None:
        self.words[word] += 1
        self.pairs[self.last, word] += 1
        self.last = word

    def score(self, words: Sequence[str]) -> list[float]:
        found = []
        for word in words:
            found.append(math.log(self.prob(word)))
            self.learn(word)
        return found


@final
class Asked:
    """The honest one, which can also be asked."""

    def __init__(self) -> None:
        self._online = Honest()

    def score(self, words: Sequence[str]) -> list[float]:
        return self._online.score(words)

    def predict(self, words: Sequence[str]) -> list[float]:
        return [math.log(self._online.prob(word)) for word in words]


@final
class TargetInKey:
    """A cache whose key holds the word to be predicted, hashed into few places: hits for all."""

    def __init__(self) -> None:
        self._online = Honest()
        self._cache: Counter[int] = Counter()

    def _key(self, word: str) -> int:
        return sum(map(ord, self._online.last + word)) % 8

    def score(self, words: Sequence[str]) -> list[float]:
        found = []
        for word in words:
            hits = self._cache[self._key(word)]
            found.append(math.log(0.5 * self._online.prob(word) + 0.5 * hits / (hits + 1)))
            self._cache[self._key(word)] += 1
            self._online.learn(word)
        return found


@final
class LearnedFirst:
    """Each word is learned just before it is scored."""

    def __init__(self) -> None:
        self._online = Honest()

    def score(self, words: Sequence[str]) -> list[float]:
        found = []
        for word in words:
            last = self._online.last
            self._online.learn(word)
            now, self._online.last = self._online.last, last
            found.append(math.log(self._online.prob(word)))
            self._online.last = now
        return found


@final
class LearnedFirstAsked:
    """The same, and honest when it is asked."""

    def __init__(self) -> None:
        self._cheat, self._honest = LearnedFirst(), Asked()

    def score(self, words: Sequence[str]) -> list[float]:
        self._honest.score(words)
        return self._cheat.score(words)

    def predict(self, words: Sequence[str]) -> list[float]:
        return self._honest.predict(words)


@final
class Unnormalized:
    """A cache that is added on top of probabilities that had all of it already."""

    def __init__(self) -> None:
        self._online = Honest()

    def score(self, words: Sequence[str]) -> list[float]:
        found = []
        for word in words:
            more = 0.05 * min(self._online.words[word], 4)
            found.append(min(0.0, math.log(self._online.prob(word) + more)))
            self._online.learn(word)
        return found


@final
class TwoPasses:
    """Every block is learned as a whole before its first word is scored."""

    def __init__(self) -> None:
        self._online = Honest()

    def score(self, words: Sequence[str]) -> list[float]:
        first = self._online.last
        for word in words:
            self._online.learn(word)
        found = []
        for before, word in zip([first, *words], words, strict=False):
            self._online.last = before
            found.append(math.log(self._online.prob(word)))
        return found


class Kept:
    """What one run learned is there in the next."""

    shared: Honest

    def __init__(self) -> None:
        self._online = Kept.shared

    def score(self, words: Sequence[str]) -> list[float]:
        return self._online.score(words)


def vocabulary_of_the_future(words: Sequence[str]) -> list[float]:
    """Unigrams over the words of the whole text, which are known before they come."""
    seen: Counter[str] = Counter()
    size, found = len(set(words)), []
    for number, word in enumerate(words):
        found.append(math.log((seen[word] + 1) / (number + size)))
        seen[word] += 1
    return found


def honest_text(words: Sequence[str]) -> list[float]:
    """The honest one as a function of a text."""
    return Honest().score(words)
