"""`/v1/memories`: make, list, look at, delete, read, score, predict, complete, forget."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from unbounded.errors import SettingError
from unbounded.memory import Budget, Memory
from unbounded.memory.names import LONGEST, PATTERN
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder, about, require
from unbounded.serve.asking import documents, predicted, scored
from unbounded.serve.documented import refusals
from unbounded.serve.events import DONE, Events, answer, streamed
from unbounded.serve.execution import ask_after, begin_telling, within
from unbounded.serve.places import Placed, place
from unbounded.serve.reading import check_lines, read_all
from unbounded.serve.refusals import Refused
from unbounded.serve.state import Service
from unbounded.serve.writing import SamplingParams, follows_space, write

router = APIRouter(prefix="/v1/memories", tags=["memories"])
Name = Annotated[str, Path(pattern=PATTERN, max_length=LONGEST, examples=["notes"])]
Before = Annotated[int | None, Query(ge=0, le=2**31, description="`first` of the answer before.")]


@router.post(
    "",
    status_code=201,
    response_model=schemas.Stats,
    responses=refusals(409, 413, 415, body=True),
)
async def make(request: Request, asked: schemas.NewMemory, service: Asked, key: Holder) -> Any:
    """Make a memory that has read nothing."""
    require(key, asked.name, "write")
    about(request.scope)["memory"] = asked.name
    budget = None if asked.max_entries is None else Budget(asked.max_entries, asked.policy)
    await service.registry.make(asked.name, budget)
    return await _stats(service, asked.name)


@router.get("", response_model=schemas.Memories, responses=refusals())
async def list_memories(service: Asked, key: Holder) -> Any:
    """The memories that the key may see."""
    sessions = service.registry.opened()
    names = [name for name in service.registry.names() if key.sees(name)]
    return {
        "memories": [
            {"name": name, "entries": len(sessions[name].memory) if name in sessions else None}
            for name in names
        ]
    }


@router.get("/{name}", response_model=schemas.Stats, responses=refusals(404, named=True))
async def stats(request: Request, name: Name, service: Asked, key: Holder) -> Any:
    """What a memory holds."""
    about(request.scope)["memory"] = name
    return await _stats(service, name)


@router.delete("/{name}", response_model=schemas.Deleted, responses=refusals(404, named=True))
async def delete(request: Request, name: Name, service: Asked, key: Holder) -> Any:
    """Take a memory away, files and all."""
    about(request.scope)["memory"] = name
    await service.registry.delete(name)
    return {"deleted": name}


@router.get(
    "/{name}/documents", response_model=schemas.Documents, responses=refusals(404, named=True)
)
async def list_documents(
    request: Request, name: Name, service: Asked, key: Holder, before: Before = None
) -> Any:
    """What it has read, and how much of each is left: the last, or the last before some."""
    about(request.scope)["memory"] = name
    async with service.registry.session(name) as session:
        found = await within(service, session.ask(documents))
    last = len(found) if before is None else min(before, len(found))
    first = max(0, last - service.limits.documents)
    return {"documents": found[first:last], "first": first}


@router.post(
    "/{name}/read",
    response_model=schemas.ReadAnswer,
    responses=refusals(404, 413, 415, named=True, body=True, streams=True),
)
async def read(
    request: Request, name: Name, asked: schemas.ReadRequest, service: Asked, key: Holder
) -> Response:
    """Read a text: durable before the answer; a text once begun is read even if the user leaves."""
    about(request.scope)["memory"] = name
    _check_length(asked.text, service.limits.text)
    check_lines(asked.text, service.limits.line)
    told = Events(service.limits.events) if asked.stream else None
    work = service.begin(read_all(service, name, asked, told))
    if told is not None:
        await told.begun()
        return streamed(told)
    found = await asyncio.shield(work)
    about(request.scope)["words"] = found["words"]
    return await answer(service.workers, found)


@router.post(
    "/{name}/score",
    response_model=schemas.ScoreAnswer,
    responses=refusals(404, 413, 415, named=True, body=True),
)
async def score(
    request: Request, name: Name, asked: schemas.ScoreRequest, service: Asked, key: Holder
) -> Response:
    """How surprising each word is, to the network alone and with the memory; teaches nothing."""
    about(request.scope)["memory"] = name
    placed = await _placed(service, asked.text, ended=True)
    found = await ask_after(
        service,
        name,
        placed.words,
        lambda memory, advanced: scored(memory, placed, shares=asked.shares, advanced=advanced),
    )
    about(request.scope)["words"] = len(placed.words)
    service.observer.words.labels("scored").inc(len(placed.words))
    return await answer(service.workers, found)


@router.post(
    "/{name}/predict",
    response_model=schemas.PredictAnswer,
    responses=refusals(404, 413, 415, named=True, body=True),
)
async def predict(
    request: Request, name: Name, asked: schemas.PredictRequest, service: Asked, key: Holder
) -> Response:
    """The likeliest next words, by whose word, and from which passages; teaches nothing."""
    about(request.scope)["memory"] = name
    placed = await _placed(service, asked.text, ended=False)
    found = await ask_after(
        service,
        name,
        placed.words,
        lambda memory, advanced: predicted(
            memory,
            placed.words,
            n=asked.n,
            sources=asked.sources,
            word=asked.word,
            advanced=advanced,
        ),
    )
    service.observer.words.labels("predicted").inc()
    return await answer(service.workers, found)


@router.post(
    "/{name}/complete",
    response_model=schemas.CompleteAnswer,
    responses=refusals(404, 413, 415, named=True, body=True, streams=True),
)
async def complete(
    request: Request, name: Name, asked: schemas.CompleteRequest, service: Asked, key: Holder
) -> Response:
    """Go on writing; with `stream`, an event a word."""
    about(request.scope)["memory"] = name
    placed = await _placed(service, asked.text, ended=False)
    seed = 0 if asked.seed is None else asked.seed
    sampling = SamplingParams(asked.words, asked.temperature, asked.top_p, seed)

    def pieces(memory: Memory) -> Iterator[dict[str, Any]]:
        spaced = follows_space(asked.text, memory.model.tokenizer)
        for piece in write(memory, placed.words, sampling, spaced=spaced):
            yield {"text": piece.text}

    told = await begin_telling(service, name, pieces, [DONE])
    if asked.stream:
        return streamed(told)
    found = [piece async for piece in told]
    _check_ended(found)
    text = "".join(piece["text"] for piece in found[:-1])
    return await answer(service.workers, {"text": text, "words": len(found) - 1})


@router.post(
    "/{name}/forget",
    response_model=schemas.Forgotten,
    responses=refusals(404, 413, 415, named=True, body=True),
)
async def forget(
    request: Request, name: Name, asked: schemas.ForgetRequest, service: Asked, key: Holder
) -> Any:
    """Be as if some words had never been read; durable before the answer."""
    about(request.scope)["memory"] = name
    matching = asked.matching
    if matching is not None:
        # As it stands in a memory, and never as a pattern: some patterns take for ever.
        matching = service.model.tokenizer.pattern(matching)
        if not matching:
            raise Refused(422, "bad_value", "'matching' has no word in it; give some")

    def work(memory: Memory) -> dict[str, int]:
        if asked.document is not None:
            _check_document(memory, asked.document)
        gone = memory.forget(
            document=asked.document, before=asked.before, matching=matching, last=asked.last
        )
        # Whoever was interrupted between the two asks again, and nothing is left to forget.
        if asked.compact and memory.stats()["forgotten"]:
            memory.compact()
        return {"forgotten": gone, "entries": len(memory)}

    async def task() -> dict[str, int]:
        async with service.registry.session(name) as session:
            return await session.forget(work)

    found: dict[str, int] = await asyncio.shield(service.begin(task()))
    about(request.scope)["words"] = found["forgotten"]
    service.observer.words.labels("forgotten").inc(found["forgotten"])
    return found


async def _stats(service: Service, name: str) -> dict[str, Any]:
    async with service.registry.session(name) as session:
        found = await within(service, session.ask(lambda memory: memory.stats()))
    found["words_by_day"] = dict(list(found["words_by_day"].items())[-service.limits.days :])
    return {
        "name": name,
        **{field: found[field] for field in schemas.Stats.model_fields if field != "name"},
    }


async def _placed(service: Service, text: str, *, ended: bool) -> Placed:
    """The words of what is asked about, or of what comes before it."""
    _check_length(text, service.limits.ask)
    return await service.workers.run(lambda: place(text, service.model.tokenizer, ended=ended))


def _check_ended(events: list[Any]) -> None:
    """Refuse what did not come to its end."""
    if not events or events[-1] != DONE:
        raise Refused(503, "too_slow", "it could not be finished; ask for less", retry_after=5)


def _check_length(text: str, limit: int) -> None:
    if len(text) > limit:
        raise Refused(
            413, "too_long", f"a text of {len(text):,} characters; at most {limit:,} are taken here"
        )


def _check_document(memory: Memory, name: str) -> None:
    try:
        memory.forget(document=name, dry_run=True)
    except SettingError:
        raise Refused(404, "no_document", "the memory never read a document of that name") from None
