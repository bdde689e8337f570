"""`/v1/memories`: make, list, look at, delete, read, score, predict, complete, forget.

Routes first, then the work of each on a memory.
"""

import asyncio
import math
import re
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, final

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import Response

from unbounded.corpus import Line
from unbounded.corpus.formats import why_not_text
from unbounded.errors import SettingError
from unbounded.memory import Budget, Guess, Memory, SamplingParams, generate
from unbounded.memory.prediction import NetworkAlone
from unbounded.memory.sampling import Source, after, follows_space
from unbounded.model import Reading
from unbounded.serve import schemas
from unbounded.serve.guard import Context, Name
from unbounded.serve.limits import Refused, check_length
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import PredictRequest, ReadRequest, refusals
from unbounded.serve.streaming import EventQueue, begin_events, begin_pieces, json_answer, streamed
from unbounded.serve.tokens import Spans, score_blocks, tokenized
from unbounded.types import Probs

router = APIRouter(prefix="/v1/memories", tags=["memories"])

ASKED = refusals(named=True, body=True)
STREAMED = refusals(named=True, body=True, streams=True)

# What JSON can say and no text has.
_HALVES = re.compile("[\ud800-\udfff]")

Search = Annotated[
    str | None, Query(max_length=200, description="What is in their names, whatever its case.")
]
Before = Annotated[int | None, Query(ge=0, le=2**31, description="`first` of the answer before.")]


@router.post("", status_code=201, response_model=schemas.Stats, responses=refusals(409, body=True))
async def make(body: schemas.NewMemory, context: Context) -> Any:
    """Make a memory that has read nothing."""
    context.key.require(body.name, "write")
    context.log["memory"] = body.name
    budget = None if body.max_entries is None else Budget(body.max_entries, body.policy)
    await context.registry.make(body.name, budget)
    return await _stats(context.registry, body.name)


@router.get("", response_model=schemas.Memories, responses=refusals())
async def list_memories(context: Context) -> Any:
    """The memories that the key may see."""
    sessions = context.registry.opened()
    names = [name for name in context.registry.names() if context.key.sees(name)]
    return {
        "memories": [
            {"name": name, "entries": sessions[name].entries if name in sessions else None}
            for name in names
        ]
    }


@router.get("/{name}", response_model=schemas.Stats, responses=refusals(named=True))
async def stats(name: Name, context: Context) -> Any:
    """What a memory holds."""
    return await _stats(context.registry, name)


@router.delete("/{name}", response_model=schemas.Deleted, responses=refusals(named=True))
async def delete(name: Name, context: Context) -> Any:
    """Take a memory away, files and all."""
    await context.registry.delete(name)
    return {"deleted": name}


@router.get("/{name}/documents", response_model=schemas.Documents, responses=refusals(named=True))
async def list_documents(
    name: Name, context: Context, before: Before = None, search: Search = None
) -> Any:
    """What it has read, and how much of each is left: the last, or the last before some."""
    registry, wanted = context.registry, (search or "").casefold()

    def work(memory: Memory) -> list[dict[str, Any]]:
        return [
            {"name": one.name[:PATH], "words": one.words, "time": one.time.isoformat()}
            for one in memory.documents()
            if wanted in one.name.casefold()
        ]

    found = await registry.ask(name, work)
    last = len(found) if before is None else min(before, len(found))
    first = max(0, last - registry.limits.documents)
    return {"documents": found[first:last], "first": first}


@router.post("/{name}/read", response_model=schemas.ReadAnswer, responses=STREAMED)
async def read(name: Name, body: schemas.ReadRequest, context: Context) -> Response:
    """Read a text: durable before the answer; a text once begun is read even if the user leaves.

    The same text under the same document's name is read once; a changed one replaces it.
    """
    registry = context.registry
    check_length("a text", len(body.text), registry.limits.text)
    check_lines(body.text, registry.limits.line)
    halves = "half a character" if _HALVES.search(body.text) else None
    if (found := halves or why_not_text(body.text)) is not None:
        raise Refused(422, "not_text", f"that is not text (it has {found}); send text")
    events = await begin_events(registry, name, partial(read_text, registry, name, body))
    if body.stream:
        return streamed(events)
    *_, done = await events.collect()
    del done["event"]
    context.log["words"] = done["words"]
    return await json_answer(registry.pool, done)


@router.post("/{name}/score", response_model=schemas.ScoreAnswer, responses=ASKED)
async def score(name: Name, body: schemas.ScoreRequest, context: Context) -> Response:
    """How surprising each word is, to the network alone and with the memory; teaches nothing."""
    registry = context.registry
    spans = await _tokenized(registry, body.text, ended=True)
    found = await registry.ask(name, lambda memory: scored(memory, spans, shares=body.shares))
    context.log["words"] = len(spans.words)
    registry.observer.words.labels("scored").inc(len(spans.words))
    return await json_answer(registry.pool, found)


@router.post("/{name}/predict", response_model=schemas.PredictAnswer, responses=ASKED)
async def predict(name: Name, body: schemas.PredictRequest, context: Context) -> Response:
    """The likeliest next words, by whose word, and from which passages; teaches nothing."""
    registry = context.registry
    spans = await _tokenized(registry, body.text, ended=False)
    found = await registry.ask(name, lambda memory: predicted(memory, spans.words, body))
    registry.observer.words.labels("predicted").inc()
    return await json_answer(registry.pool, found)


@router.post("/{name}/complete", response_model=schemas.CompleteAnswer, responses=STREAMED)
async def complete(name: Name, body: schemas.CompleteRequest, context: Context) -> Response:
    """Go on writing; with `stream`, an event a word."""
    registry = context.registry
    spans = await _tokenized(registry, body.text, ended=False)
    sampling = SamplingParams(
        body.words, body.temperature, top_p=body.top_p, seed=0 if body.seed is None else body.seed
    )
    tokenizer = registry.model.tokenizer
    spaced = follows_space(body.text, tokenizer)

    def pieces(source: Source) -> Iterator[dict[str, Any]]:
        for piece in generate(source, tokenizer, spans.words, sampling, spaced=spaced):
            yield {"text": piece.text}

    events = await begin_pieces(registry, name, pieces)
    if body.stream:
        return streamed(events)
    *found, _ = await events.collect()
    text = "".join(piece["text"] for piece in found)
    return await json_answer(registry.pool, {"text": text, "words": len(found)})


@router.post("/{name}/forget", response_model=schemas.Forgotten, responses=ASKED)
async def forget(name: Name, body: schemas.ForgetRequest, context: Context) -> Any:
    """Be as if some words had never been read; durable before the answer."""
    registry, matching = context.registry, body.matching
    if matching is not None:
        # As it stands in a memory, and never as a pattern: some patterns take for ever.
        matching = registry.model.tokenizer.pattern(matching)
        if not matching:
            raise Refused(422, "bad_value", "'matching' has no word in it; give some")

    def work(memory: Memory) -> dict[str, int]:
        if body.document is not None:
            try:
                memory.forget(body.document, dry_run=True)
            except SettingError:
                unknown = "the memory never read a document of that name"
                raise Refused(404, "no_document", unknown) from None
        gone = memory.forget(body.document, before=body.before, matching=matching, last=body.last)
        # Whoever was interrupted between the two asks again, and nothing is left to forget.
        if body.compact and memory.stats()["forgotten"]:
            memory.compact()
        return {"forgotten": gone, "entries": len(memory)}

    async def task() -> dict[str, int]:
        async with registry.session(name) as session:
            return await session.forget(work)

    found = await asyncio.shield(registry.begin(task()))
    context.log["words"] = found["forgotten"]
    registry.observer.words.labels("forgotten").inc(found["forgotten"])
    return found


async def _stats(registry: Registry, name: str) -> dict[str, Any]:
    found = await registry.ask(name, lambda memory: memory.stats())
    days = list(found["words_by_day"].items())[-registry.limits.days :]
    return found | {"name": name, "words_by_day": dict(days)}


async def _tokenized(registry: Registry, text: str, *, ended: bool) -> Spans:
    """The words of what is asked about, or of what comes before it."""
    check_length("a text", len(text), registry.limits.ask)
    return await registry.pool.run(lambda: tokenized(text, registry.model.tokenizer, ended=ended))


def check_lines(text: str, most: int) -> None:
    """Refuse a text with a line that is too long.

    >>> check_lines("ab\\nabc\\n\\na", 3)
    """
    at = 0
    while len(text) - at > most:
        # The last end of a line that is near enough; where there is none, the line is too long.
        end = text.rfind("\n", at, at + most + 1)
        if end < 0:
            raise Refused(413, "too_long", f"a line of more than {most:,} characters; break it up")
        at = end + 1


NAME, PATH = 200, 4096
"""Characters of a document's name in a passage, and in the list of documents."""


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


async def read_text(registry: Registry, name: str, body: ReadRequest, events: EventQueue) -> None:
    """Read a text into a memory; the last event is sent when all of it is durable."""
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
                # Who does not listen is sent fewer blocks, or none, and the end.
                if body.stream and not events.full:
                    block = {
                        "characters": lines.seen,
                        "nats": float(memory.mean()),
                        "static_nats": float(alone.mean()),
                        "block": len(memory),
                    }
                    events.put({"event": "progress", **so_far(), **block})
        done = {"event": "done", **so_far()}
        events.put(done | ({"nats": nats, "static_nats": static_nats} if body.per_word else {}))


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
