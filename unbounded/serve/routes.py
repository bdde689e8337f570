"""`/v1/memories`: make, list, look at, delete, read, score, predict, complete, forget."""

import asyncio
import re
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from unbounded.corpus.plain_text import why_not_text
from unbounded.errors import SettingError
from unbounded.memory import Budget, Memory, SamplingParams, generate
from unbounded.memory.sampling import Source, follows_space
from unbounded.serve import schemas
from unbounded.serve.answers import Spans, documents, predicted, read_text, scored, tokenized
from unbounded.serve.refusals import Refused
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import refusals
from unbounded.serve.security import Context, Name
from unbounded.serve.streaming import begin_events, begin_pieces, json_answer, streamed

router = APIRouter(prefix="/v1/memories", tags=["memories"])

# What JSON can say and no text has.
_HALVES = re.compile("[\ud800-\udfff]")

Search = Annotated[
    str | None, Query(max_length=200, description="What is in their names, whatever its case.")
]
Before = Annotated[int | None, Query(ge=0, le=2**31, description="`first` of the answer before.")]


@router.post(
    "",
    status_code=201,
    response_model=schemas.Stats,
    responses=refusals(409, 413, 415, body=True),
)
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


@router.get("/{name}", response_model=schemas.Stats, responses=refusals(404, named=True))
async def stats(name: Name, context: Context) -> Any:
    """What a memory holds."""
    return await _stats(context.registry, name)


@router.delete("/{name}", response_model=schemas.Deleted, responses=refusals(404, named=True))
async def delete(name: Name, context: Context) -> Any:
    """Take a memory away, files and all."""
    await context.registry.delete(name)
    return {"deleted": name}


@router.get(
    "/{name}/documents", response_model=schemas.Documents, responses=refusals(404, named=True)
)
async def list_documents(
    name: Name, context: Context, before: Before = None, search: Search = None
) -> Any:
    """What it has read, and how much of each is left: the last, or the last before some."""
    registry = context.registry
    found = await registry.ask(name, lambda memory: documents(memory, search or ""))
    last = len(found) if before is None else min(before, len(found))
    first = max(0, last - registry.limits.documents)
    return {"documents": found[first:last], "first": first}


@router.post(
    "/{name}/read",
    response_model=schemas.ReadAnswer,
    responses=refusals(404, 413, 415, named=True, body=True, streams=True),
)
async def read(name: Name, body: schemas.ReadRequest, context: Context) -> Response:
    """Read a text: durable before the answer; a text once begun is read even if the user leaves.

    The same text under the same document's name is read once; a changed one replaces it.
    """
    registry = context.registry
    _check_length(body.text, registry.limits.text)
    check_lines(body.text, registry.limits.line)
    halves = "half a character" if _HALVES.search(body.text) else None
    if (found := halves or why_not_text(body.text)) is not None:
        raise Refused(422, "not_text", f"that is not text (it has {found}); send text")
    events = await begin_events(registry, name, read_text(registry, name, body))
    if body.stream:
        return streamed(events)
    (done,) = await events.collect(keep=1)
    del done["event"]
    context.log["words"] = done["words"]
    return await json_answer(registry.pool, done)


@router.post(
    "/{name}/score",
    response_model=schemas.ScoreAnswer,
    responses=refusals(404, 413, 415, named=True, body=True),
)
async def score(name: Name, body: schemas.ScoreRequest, context: Context) -> Response:
    """How surprising each word is, to the network alone and with the memory; teaches nothing."""
    registry = context.registry
    spans = await _tokenized(registry, body.text, ended=True)
    found = await registry.ask(name, lambda memory: scored(memory, spans, shares=body.shares))
    context.log["words"] = len(spans.words)
    registry.observer.words.labels("scored").inc(len(spans.words))
    return await json_answer(registry.pool, found)


@router.post(
    "/{name}/predict",
    response_model=schemas.PredictAnswer,
    responses=refusals(404, 413, 415, named=True, body=True),
)
async def predict(name: Name, body: schemas.PredictRequest, context: Context) -> Response:
    """The likeliest next words, by whose word, and from which passages; teaches nothing."""
    registry = context.registry
    spans = await _tokenized(registry, body.text, ended=False)
    found = await registry.ask(name, lambda memory: predicted(memory, spans.words, body))
    registry.observer.words.labels("predicted").inc()
    return await json_answer(registry.pool, found)


@router.post(
    "/{name}/complete",
    response_model=schemas.CompleteAnswer,
    responses=refusals(404, 413, 415, named=True, body=True, streams=True),
)
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


@router.post(
    "/{name}/forget",
    response_model=schemas.Forgotten,
    responses=refusals(404, 413, 415, named=True, body=True),
)
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
            _check_document(memory, body.document)
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
    found["words_by_day"] = dict(list(found["words_by_day"].items())[-registry.limits.days :])
    return {field: found[field] for field in schemas.Stats.model_fields if field != "name"} | {
        "name": name
    }


async def _tokenized(registry: Registry, text: str, *, ended: bool) -> Spans:
    """The words of what is asked about, or of what comes before it."""
    _check_length(text, registry.limits.ask)
    return await registry.pool.run(lambda: tokenized(text, registry.model.tokenizer, ended=ended))


def _check_length(text: str, limit: int) -> None:
    if len(text) > limit:
        raise Refused(
            413, "too_long", f"a text of {len(text):,} characters; at most {limit:,} are taken here"
        )


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


def _check_document(memory: Memory, name: str) -> None:
    try:
        memory.forget(name, dry_run=True)
    except SettingError:
        raise Refused(404, "no_document", "the memory never read a document of that name") from None
