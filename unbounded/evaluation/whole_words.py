"""Whole words: pieces put together again, how many there are, and which gained most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter, Tokenizer
from unbounded.evaluation.metrics import surprise
from unbounded.evaluation.rows import ScoredBlock


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
        self._line += pieces
        *lines, self._line = _lines(self._line)
        self._whole += sum(self._words(line) + 1 for line in lines)

    @property
    def total(self) -> int:
        """The words, with those of a line that has not ended."""
        return self._whole + (self._words(self._line) if self._line else 0)

    def _words(self, line: Sequence[str]) -> int:
        return len(self._tokenizer.words(self._splitter.text(line)))


def _lines(pieces: list[str]) -> list[list[str]]:
    """Cut at sentence ends, which are dropped; the last line has none."""
    ends = [place for place, piece in enumerate(pieces) if piece == SENTENCE_END]
    starts = [0, *(end + 1 for end in ends)]
    return [pieces[a:b] for a, b in zip(starts, [*ends, len(pieces)], strict=True)]


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
        self._numbers: dict[str, int] = {}
        self._nats: np.ndarray = np.zeros(0)
        self._times: np.ndarray = np.zeros(0, np.int64)

    def __call__(self, block: ScoredBlock) -> None:
        """Add up a block."""
        before, after = surprise(block.probs[self.base]), surprise(block.probs[self.other])
        # Where both are infinite nothing is gained.
        gained = np.subtract(before, after, out=np.zeros(len(before)), where=before != after)
        words: Sequence[str] = block.reading.words
        if not self._splitter.parted:
            words, gained = self._together(words, gained)
        if not words:
            return
        ids = np.array([self._numbers.setdefault(w, len(self._numbers)) for w in words], np.int64)
        nats: np.ndarray = np.bincount(ids, gained, len(self._numbers))
        times: np.ndarray = np.bincount(ids, minlength=len(self._numbers))
        nats[: len(self._nats)] += self._nats
        times[: len(self._times)] += self._times
        self._nats, self._times = nats, times

    def most(self, count: int, *, lost: bool = False) -> list[Gain]:
        """The words with the largest sums; with `lost`, those with the most negative ones."""
        words, nats = list(self._numbers), -self._nats if lost else self._nats
        # A stable order of first sight among equals keeps reports the same from run to run.
        ordered = np.argsort(-nats, kind="stable")[: count + 1].tolist()
        found = [
            Gain(words[i], float(self._nats[i]), int(self._times[i]))
            for i in ordered
            if nats[i] > 0 and words[i] != SENTENCE_END
        ]
        return found[:count]

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
