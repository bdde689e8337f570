"""What a memory is asked, and answers: texts read, words scored, words predicted, documents."""

import math
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from unbounded.corpus import SENTENCE_END, Line, Splitter
from unbounded.memory import Guess, Memory
from unbounded.memory.readings import NetworkAlone, peeked
from unbounded.memory.sampling import after
from unbounded.model import OnlineModel, Reading
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import PredictRequest, ReadRequest
from unbounded.serve.streaming import EventQueue
from unbounded.types import Probs

BLOCK = 512
"""Words that are scored at once."""

NAME, PATH = 200, 4096
"""Characters of a document's name in a passage, and in the list of documents."""


@dataclass(frozen=True)
class Spans:
    """The words of a text, and the first character of each and the one after its last."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def pieces(self) -> list[str]:
        """The text cut behind each word; put together again it is the text."""
        cuts = [0, *self.ends[:-1], len(self.text)] if self.words else []
        return [self.text[start:end] for start, end in pairwise(cuts)]


def tokenized(text: str, tokenizer: Splitter, *, ended: bool) -> Spans:
    """Split a text into words, a sentence a line, with where each stands.

    `ended` says whether the last line has ended even if no line feed says so.

    >>> from unbounded.corpus import Tokenizer
    >>> spans = tokenized("The cat.\\nIt", Tokenizer(), ended=False)
    >>> list(zip(spans.words, spans.starts, spans.ends))[2:]
    [('.', 7, 8), ('</s>', 8, 9), ('it', 9, 11)]
    >>> spans.pieces()
    ['The', ' cat', '.', '\\n', 'It']
    """
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    lines, at = text.split("\n"), 0
    for number, line in enumerate(lines):
        found = tokenizer.words(line)
        for start, end in tokenizer.spans(line):
            starts.append(at + start)
            ends.append(at + end)
        words += found
        last = number == len(lines) - 1
        if found and (ended or not last):
            words.append(SENTENCE_END)
            starts.append(at + len(line))
            ends.append(at + len(line) + (0 if last else 1))
        at += len(line) + 1
    return Spans(text, words, starts, ends)


@final
class Tally:
    """Words and their surprise, added up for the network alone and with the memory."""

    def __init__(self) -> None:
        self._alone = NetworkAlone()
        self.words = 0
        self._nats = [0.0, 0.0]

    def add(self, reading: Reading) -> tuple[Probs, Probs]:
        """Take in some words; the nats of each, alone and with the memory."""
        alone = -np.log(self._alone.score(reading.experts, reading.table))
        memory = -np.log(reading.prob)
        self.words += len(memory)
        self._nats[0] += float(alone.sum())
        self._nats[1] += float(memory.sum())
        return alone, memory

    def perplexities(self) -> dict[str, float | None]:
        """Of both; None before the first word."""
        names = ("static_perplexity", "perplexity")
        if not self.words:
            return dict.fromkeys(names)
        return {
            name: math.exp(min(nats / self.words, 700.0))
            for name, nats in zip(names, self._nats, strict=True)
        }


def read_text(
    registry: Registry, name: str, body: ReadRequest
) -> Callable[[EventQueue], Coroutine[Any, Any, None]]:
    """Work that reads a text into a memory; its last event is sent when all of it is durable."""

    async def work(events: EventQueue) -> None:
        lines, tally = _Lines(body.text, body.document), Tally()
        nats: list[float] = []
        static_nats: list[float] = []
        weights: dict[str, float] = {}
        async with registry.session(name) as session:
            before = len(session.memory.online.vocabulary)
            events.put({"event": "accepted", "characters": len(body.text)})

            def so_far() -> dict[str, Any]:
                return {
                    "words": tally.words,
                    "new_words": len(session.memory.online.vocabulary) - before,
                    "entries": len(session.memory),
                    **tally.perplexities(),
                    "weights": weights,
                }

            # Who names no document does not mean one that was read before.
            named = "document" in body.model_fields_set and not body.again
            document = body.document if named else None
            async with aclosing(session.read(lines, body.time, document)) as readings:
                async for reading in readings:
                    alone, memory = tally.add(reading)
                    weights = dict(zip(reading.experts, reading.weights[-1].tolist(), strict=True))
                    registry.observer.words.labels("read").inc(len(memory))
                    if body.per_word:
                        nats += memory.round(4).tolist()
                        static_nats += alone.round(4).tolist()
                    # Who does not listen is sent fewer blocks, and the end.
                    if not events.full:
                        block = {
                            "characters": lines.seen,
                            "nats": float(memory.mean()),
                            "static_nats": float(alone.mean()),
                            "block": len(memory),
                        }
                        events.put({"event": "progress", **so_far(), **block})
            done = {"event": "done", **so_far()}
            events.put(done | ({"nats": nats, "static_nats": static_nats} if body.per_word else {}))

    return work


@final
class _Lines:
    """The lines of a text, and how many characters of it were taken."""

    def __init__(self, text: str, document: str) -> None:
        self._text = text
        self._document = document
        self.seen = 0

    def __iter__(self) -> Iterator[Line]:
        self.seen, number = 0, 1
        while self.seen <= len(self._text):
            end = self._text.find("\n", self.seen)
            line = self._text[self.seen : None if end < 0 else end]
            self.seen += len(line) + 1
            yield Line(self._document, number, line)
            number += 1
        self.seen = len(self._text)


def score_blocks(model: OnlineModel, words: list[str]) -> Iterator[Reading]:
    """Score words without learning any of them, a block at a time."""
    starts = range(0, len(words), BLOCK)
    return peeked(model, (words[start : start + BLOCK] for start in starts))


def scored(memory: Memory, spans: Spans, *, shares: bool) -> dict[str, Any]:
    """How surprising each word of a text would be, to the network alone and with the memory."""
    tally, rows, shown = Tally(), [], memory.model.tokenizer.shown
    positions = zip(spans.words, spans.starts, spans.ends, strict=True)
    for reading in score_blocks(memory.online, spans.words):
        alone, _ = tally.add(reading)
        parts = (reading.table * reading.weights / reading.prob[:, None]).round(4).tolist()
        columns = reading.prob.tolist(), np.exp(-alone).tolist(), parts
        # The columns first: whatever is taken from `positions` must have its row.
        for prob, static, part, (word, start, end) in zip(*columns, positions, strict=False):
            row = {"word": shown(word), "start": start, "end": end, "prob": prob, "static": static}
            rows.append(row | ({"shares": part} if shares else {}))
    experts = list(memory.online.experts)
    return {"experts": experts, "words": rows, "entries": len(memory), **tally.perplexities()}


def predicted(memory: Memory, words: list[str], body: PredictRequest) -> dict[str, Any]:
    """The likeliest next words with what speaks for them; and one that is asked about."""
    model = after(memory.online, words)
    found = memory.predict_after(model, body.n, body.prefix, sources=body.sources)
    asked = None
    if body.word is not None:
        asked = _guess(memory.explain(model, body.word, sources=body.sources))
    return {
        "words": [_guess(guess) for guess in found.words],
        "asked": asked,
        "oov": found.oov,
        "rest": found.rest,
        "weights": found.weights,
        "entries": len(memory),
    }


def _guess(guess: Guess) -> dict[str, Any]:
    passages = [
        asdict(one) | {"time": one.time.isoformat(), "document": one.document[:NAME]}
        for one in guess.sources
    ]
    return asdict(guess) | {"sources": passages}


def documents(memory: Memory, search: str) -> list[dict[str, Any]]:
    """What was read under such names and is left of it, in the order of its first word."""
    search = search.casefold()
    return [
        {"name": one.name[:PATH], "words": one.words, "time": one.time.isoformat()}
        for one in memory.documents()
        if search in one.name.casefold()
    ]
