"""`/v1/completions` and `/v1/models` as the official client has them: a memory is a model."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from fastapi import APIRouter, Request
from fastapi.responses import Response

from unbounded.memory import Memory
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder, about, require
from unbounded.serve.documented import refusals
from unbounded.serve.events import DONE, answer, streamed
from unbounded.serve.execution import begin_telling
from unbounded.serve.limits import Limits
from unbounded.serve.prompts import Prompt, of_text, of_tokens
from unbounded.serve.refusals import Refused
from unbounded.serve.routes import Name
from unbounded.serve.state import Service
from unbounded.serve.writing import Piece, SamplingParams, write
from unbounded.store.layout import NAME

router = APIRouter(prefix="/v1", tags=["as the official client has it"])


@router.get("/models", response_model=schemas.Models, responses=refusals())
async def list_models(service: Asked, key: Holder) -> Any:
    """The memories, as models."""
    names = [name for name in service.registry.names() if key.sees(name)]
    return {"object": "list", "data": [_model(service, name) for name in names]}


@router.get("/models/{name}", response_model=schemas.Model, responses=refusals(404, named=True))
async def model(name: Name, service: Asked, key: Holder) -> Any:
    """One of them."""
    if name not in service.registry.names():
        raise Refused(404, "model_not_found", "there is no memory of that name")
    return _model(service, name)


@router.post(
    "/completions",
    response_model=schemas.Completion,
    response_model_exclude_unset=True,
    responses=refusals(404, 413, 415, body=True, streams=True),
)
async def completions(
    request: Request, asked: schemas.CompletionRequest, service: Asked, key: Holder
) -> Response:
    """Go on after a prompt, or score it (`echo`, `logprobs`, `max_tokens` 0)."""
    about(request.scope)["memory"] = asked.model
    require(key, asked.model, "read")
    _check(service, asked)
    prompts = await service.workers.run(lambda: _prompts(service, asked))
    _check_words(service, asked, prompts)
    choices, sampling = asked.n or 1, _manner(asked)
    id, created = f"cmpl-{secrets.token_hex(12)}", int(time.time())

    def chunks(memory: Memory) -> Iterator[dict[str, Any]]:
        said = 0
        for number, prompt in enumerate(prompts):
            for index in range(number * choices, (number + 1) * choices):
                drawn = replace(sampling, seed=sampling.seed + index)
                before = prompt.echo(memory, asked.logprobs) if asked.echo else iter(())
                offset = 0
                for piece in before:
                    yield _chunk(id, created, asked, index, piece, offset)
                    offset += len(piece.text)
                for piece in write(memory, prompt.words, drawn, spaced=prompt.spaced):
                    said += 1
                    yield _chunk(id, created, asked, index, piece, offset)
                    offset += len(piece.text)
                if not sampling.words:
                    yield _chunk(id, created, asked, index, Piece("", 0.0, {}, "length"), None)
        read = sum(prompt.tokens for prompt in prompts)
        usage = {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}
        yield _shell(id, created, asked.model) | {"choices": [], "usage": usage}

    told = await begin_telling(service, asked.model, chunks, [DONE])
    if asked.stream:
        if not (asked.stream_options or {}).get("include_usage"):
            return streamed(
                told.without(lambda event: not isinstance(event, str) and "usage" in event)
            )
        return streamed(told)
    events = [event async for event in told]
    if not events or events[-1] != DONE:
        error = events[-1]["error"] if events and "error" in events[-1] else None
        raise Refused(503, "too_slow", error["message"] if error else "it could not be finished")
    with_probs = asked.logprobs is not None
    found = await service.workers.run(
        lambda: _joined(events[:-1], len(prompts) * choices, with_probs=with_probs)
    )
    about(request.scope)["words"] = found["usage"]["completion_tokens"]
    return await answer(service.workers, found)


def _prompts(service: Service, asked: schemas.CompletionRequest) -> list[Prompt]:
    """The prompts, whether text or tokens."""
    return [
        of_text(prompt, service.model.tokenizer)
        if isinstance(prompt, str)
        else of_tokens(service.spelling.read(prompt), service.model.tokenizer)
        for prompt in _given(asked)
    ]


def _given(asked: schemas.CompletionRequest) -> list[Any]:
    """Each prompt, as it was sent."""
    given: Any = asked.prompt
    return [given] if isinstance(given, str) or isinstance(given[0], int) else given


def _check(service: Service, asked: schemas.CompletionRequest) -> None:
    """Refuse what is too long as it was sent, before anything is made of it."""
    limits, given = service.limits, _given(asked)
    if sum(map(len, given)) > limits.ask:
        _refuse_length(limits)
    writes = (16 if asked.max_tokens is None else asked.max_tokens) * (asked.n or 1) * len(given)
    if writes > 4 * limits.words:
        raise Refused(413, "too_long", f"{writes:,} words to write; at most {4 * limits.words}")


def _check_words(service: Service, asked: schemas.CompletionRequest, prompts: list[Prompt]) -> None:
    """Refuse what turns out to be too long: a token can be a long word."""
    limits = service.limits
    if sum(one.length for one in prompts) > limits.ask:
        _refuse_length(limits)
    words = sum(len(one.words) for one in prompts) * (asked.n or 1)
    if asked.echo and asked.logprobs and words > limits.explained:
        raise Refused(
            413,
            "too_long",
            f"{words:,} words with the likeliest others at each; at most {limits.explained} are "
            "taken: ask with logprobs 0, or for less",
        )


def _refuse_length(limits: Limits) -> NoReturn:
    raise Refused(
        413, "too_long", f"prompts of more than {limits.ask:,} characters or tokens in all"
    )


def _manner(asked: schemas.CompletionRequest) -> SamplingParams:
    stop = asked.stop or []
    return SamplingParams(
        16 if asked.max_tokens is None else asked.max_tokens,
        1.0 if asked.temperature is None else asked.temperature,
        1.0 if asked.top_p is None else asked.top_p,
        secrets.randbelow(2**32) if asked.seed is None else asked.seed,
        (stop,) if isinstance(stop, str) else tuple(stop),
        asked.logprobs or 0,
    )


def _model(service: Service, name: str) -> dict[str, Any]:
    created = int((service.root / name / NAME).stat().st_mtime)
    return {"id": name, "object": "model", "created": created, "owned_by": "unbounded"}


def _shell(id: str, created: int, model: str) -> dict[str, Any]:
    return {"id": id, "object": "text_completion", "created": created, "model": model}


def _chunk(
    id: str,
    created: int,
    asked: schemas.CompletionRequest,
    index: int,
    piece: Piece,
    offset: int | None,
) -> dict[str, Any]:
    probs: dict[str, Any] | None = None
    if asked.logprobs is not None and offset is not None:
        probs = {
            "tokens": [piece.text],
            "token_logprobs": [piece.log_prob],
            "top_logprobs": [piece.top] if asked.logprobs else None,
            "text_offset": [offset],
        }
    choice = {"text": piece.text, "index": index, "logprobs": probs, "finish_reason": piece.finish}
    return _shell(id, created, asked.model) | {"choices": [choice]}


def _joined(chunks: list[dict[str, Any]], count: int, *, with_probs: bool) -> dict[str, Any]:
    """All chunks as one answer."""
    texts: list[list[str]] = [[] for _ in range(count)]
    choices: list[dict[str, Any]] = [
        {
            "text": "",
            "index": index,
            "logprobs": {"tokens": [], "token_logprobs": [], "top_logprobs": None}
            | {"text_offset": []}
            if with_probs
            else None,
            "finish_reason": None,
        }
        for index in range(count)
    ]
    for chunk in chunks:
        for part in chunk["choices"]:
            whole = choices[part["index"]]
            texts[part["index"]].append(part["text"])
            whole["finish_reason"] = part["finish_reason"] or whole["finish_reason"]
            for name, values in (part["logprobs"] or {}).items():
                if values is not None:
                    whole["logprobs"][name] = whole["logprobs"][name] or []
                    whole["logprobs"][name] += values
    for whole, text in zip(choices, texts, strict=True):
        whole["text"] = "".join(text)
    return {**chunks[-1], "choices": choices}
