"""`unbounded read --surprise`: a JSON line a sentence, as it is read."""

import json
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, final

import typer

if TYPE_CHECKING:
    from unbounded.corpus import Sentence, Splitter
    from unbounded.model import Reading


@final
class SurpriseLines:
    """Puts blocks together to sentences again, and prints each with its surprise, as JSON."""

    def __init__(self, splitter: "Splitter") -> None:
        from unbounded.evaluation.unusual import OnlineQuantile

        self._splitter = splitter
        self._words: list[str] = []
        self._nats: list[float] = []
        self._come: deque[Sentence] = deque()
        self._quantile = OnlineQuantile()

    def noted(self, sentences: "Iterable[Sentence]") -> "Iterator[Sentence]":
        """The same sentences, of which it is noted where they stand."""
        for sentence in sentences:
            self._come.append(sentence)
            yield sentence

    def add(self, reading: "Reading") -> None:
        """Take in a block; whole sentences are printed."""
        from unbounded.corpus import SENTENCE_END

        for word, prob in zip(reading.words, reading.prob.tolist(), strict=True):
            self._words.append(word)
            self._nats.append(-math.log(prob))
            if word == SENTENCE_END:
                self._print()
                self._words, self._nats = [], []
        sys.stdout.flush()

    def _print(self) -> None:
        # What was there already is passed over, and not said.
        while self._come and self._come[0].words != tuple(self._words):
            self._come.popleft()
        source = self._come.popleft() if self._come else None
        mean = sum(self._nats) / len(self._nats)
        most = max(range(len(self._nats)), key=self._nats.__getitem__)
        quantile = self._quantile.add(mean)
        figures = {
            "document": None if source is None else source.document,
            "line": None if source is None else source.line,
            "nats": round(mean, 3),
            "quantile": None if quantile is None else round(quantile, 4),
            "word": self._splitter.shown(self._words[most]),
            "word_nats": round(self._nats[most], 3),
            "text": _text(source) or self._splitter.text(self._words[:-1]),
        }
        typer.echo(json.dumps(figures, ensure_ascii=False))


def _text(source: "Sentence | None") -> str:
    """A sentence as it was written, if that is known."""
    return "" if source is None or source.forms is None else "".join(source.forms).strip()
