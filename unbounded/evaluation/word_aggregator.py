"""Pieces put together to words again: to count them, and to show what each gained."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter, Tokenizer
from unbounded.evaluation.progressive import ScoredBlock, Watcher
from unbounded.types import Ids


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


@final
class WordAggregator:
    """Shows a watcher words instead of pieces: a word's surprise is the sum of its pieces'.

    The pieces after the last beginning of a word wait for the next block.
    """

    def __init__(self, splitter: Splitter, watcher: Watcher) -> None:
        self._splitter = splitter
        self._watcher = watcher
        self._ids: dict[str, int] = {}
        self._waiting: ScoredBlock | None = None

    def __call__(self, block: ScoredBlock) -> None:
        """Pass on the words that are complete."""
        block = block if self._waiting is None else _joined(self._waiting, block)
        starts = self._splitter.starts(block.reading.words)
        last = int(starts[-1]) if len(starts) else 0
        self._waiting = _cut(block, slice(last, None))
        if last:
            self._watcher(self._words(_cut(block, slice(last)), starts[:-1]))

    def _words(self, block: ScoredBlock, starts: Ids) -> ScoredBlock:
        reading = block.reading
        words = whole_words(reading.words, self._splitter)
        ids = np.array([self._ids.setdefault(word, len(self._ids)) for word in words])

        def product(probs: np.ndarray) -> np.ndarray:
            found: np.ndarray = np.multiply.reduceat(probs, starts, axis=0)
            return found

        whole = replace(
            reading,
            words=words,
            ids=ids,
            hidden=reading.hidden[starts],
            prob=product(reading.prob),
            table=product(reading.table),
            weights=reading.weights[starts],
        )
        return replace(
            block,
            reading=whole,
            bands=block.bands[starts],
            probs={name: product(probs) for name, probs in block.probs.items()},
            weights={name: weights[starts] for name, weights in block.weights.items()},
        )


def _cut(block: ScoredBlock, part: slice) -> ScoredBlock:
    reading = block.reading
    return replace(
        block,
        reading=replace(
            reading,
            words=list(reading.words[part]),
            ids=reading.ids[part],
            hidden=reading.hidden[part],
            prob=reading.prob[part],
            table=reading.table[part],
            weights=reading.weights[part],
        ),
        bands=block.bands[part],
        probs={name: probs[part] for name, probs in block.probs.items()},
        weights={name: weights[part] for name, weights in block.weights.items()},
    )


def _joined(one: ScoredBlock, two: ScoredBlock) -> ScoredBlock:
    a, b = one.reading, two.reading
    return replace(
        two,
        reading=replace(
            b,
            words=[*a.words, *b.words],
            ids=np.concatenate([a.ids, b.ids]),
            hidden=np.concatenate([a.hidden, b.hidden]),
            prob=np.concatenate([a.prob, b.prob]),
            table=np.concatenate([a.table, b.table]),
            weights=np.concatenate([a.weights, b.weights]),
        ),
        bands=np.concatenate([one.bands, two.bands]),
        probs={n: np.concatenate([p, two.probs[n]]) for n, p in one.probs.items()},
        weights={n: np.concatenate([w, two.weights[n]]) for n, w in one.weights.items()},
    )
