"""What can be asked of a memory: how surprising words are, what comes next and why."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, final

import numpy as np

from unbounded.lm.together import Advanced
from unbounded.memory import Guess, Memory
from unbounded.mixture import Online
from unbounded.model import OnlineModel, Reading
from unbounded.serve.places import Placed
from unbounded.types import Probs, Table

BLOCK = 512
"""Words that are scored at once."""

NAME, PATH = 200, 4096
"""Characters of a document's name in a passage, and in the list of documents."""


@final
class Alone:
    """The network without a memory, with a share for OOV words that it learns as it goes."""

    def __init__(self) -> None:
        self._mixture = Online(2)

    def score(self, experts: Sequence[str], table: Table) -> Probs:
        """What it would have said of each word, from the columns of all experts."""
        columns = [experts.index("static"), experts.index("uniform")]
        return self._mixture.score(np.ascontiguousarray(table[:, columns])).prob


@final
class Tally:
    """Words and their surprise, added up for the network alone and with the memory."""

    def __init__(self) -> None:
        self._alone = Alone()
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


def readings(
    model: OnlineModel, words: list[str], advanced: Advanced | None = None
) -> Iterator[Reading]:
    """Score words without learning any of them, a block at a time; as `Memory.score` does."""
    for start in range(0, len(words), BLOCK):
        reading, model = model.peek(words[start : start + BLOCK], advanced)
        advanced = None
        yield reading


def scored(
    memory: Memory, placed: Placed, *, shares: bool, advanced: Advanced | None = None
) -> dict[str, Any]:
    """How surprising each word of a text would be, to the network alone and with the memory."""
    tally, rows, shown = Tally(), [], memory.model.tokenizer.shown
    experts: tuple[str, ...] = tuple(memory.online.experts)
    at = 0
    for reading in readings(memory.online, placed.words, advanced):
        alone, _ = tally.add(reading)
        parts = (reading.table * reading.weights / reading.prob[:, None]).round(4).tolist()
        for i, (prob, static) in enumerate(
            zip(reading.prob.tolist(), np.exp(-alone).tolist(), strict=True)
        ):
            row = {
                "word": shown(placed.words[at + i]),
                "start": placed.starts[at + i],
                "end": placed.ends[at + i],
                "prob": prob,
                "static": static,
            }
            rows.append(row | ({"shares": parts[i]} if shares else {}))
        at += len(reading.words)
    return {"experts": list(experts), "words": rows, "entries": len(memory), **tally.perplexities()}


def after(memory: Memory, words: list[str], advanced: Advanced | None = None) -> OnlineModel:
    """The model behind words that are not learned."""
    return memory.online.peek(words, advanced)[1] if words else memory.online


def predicted(
    memory: Memory,
    words: list[str],
    *,
    n: int,
    sources: int,
    word: str | None,
    advanced: Advanced | None = None,
) -> dict[str, Any]:
    """The likeliest next words with what speaks for them; and one that is asked about."""
    model = after(memory, words, advanced)
    found = memory.predict_after(model, n, sources=sources)
    asked = None if word is None else memory.explain(model, word, sources=sources)
    return {
        "words": [_guess(guess) for guess in found.words],
        "asked": None if asked is None else _guess(asked),
        "oov": found.oov,
        "weights": found.weights,
        "entries": len(memory),
    }


def _guess(guess: Guess) -> dict[str, Any]:
    passages = [
        asdict(one) | {"time": one.time.isoformat(), "document": one.document[:NAME]}
        for one in guess.sources
    ]
    return {
        "word": guess.word,
        "prob": guess.prob,
        "shares": guess.shares,
        "sources": passages,
    }


def documents(memory: Memory) -> list[dict[str, Any]]:
    """What was read and is left of it, in the order of its first word."""
    return [
        {"name": one.name[:PATH], "words": one.words, "time": one.time.isoformat()}
        for one in memory.documents()
    ]
