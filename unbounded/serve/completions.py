"""`/v1/completions` and `/v1/models` as the official client has them: a memory is a model."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from unbounded.keep import KeptMemory
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder, about, require
from unbounded.serve.documented import refusals
from unbounded.serve.events import DONE, streamed
from unbounded.serve.names import checked_name
from unbounded.serve.prompts import Prompt, of_text, of_tokens
from unbounded.serve.refusals import Refused
from unbounded.serve.routes import Name
from unbounded.serve.state import Service
from unbounded.serve.stepping import begin_telling
from unbounded.serve.writing import Manner, Piece, write
from unbounded.store.layout import NAME

router = APIRouter(prefix="/v1", tags=["as the official client has it"])


@router.get("/models", response_model=schemas.Models, responses=refusals())
async def list_models(service: Asked, key: Holder) -> Any:
    """The memories, as models."""
    names = [name for name in service.shelf.names() if key.sees(name)]
    return {"object": "list", "data": [_model(service, name) for name in names]}


@router.get("/models/{name}", response_model=schemas.Model, responses=refusals(404, named=True))
async def model(name: Name, service: Asked, key: Holder) -> Any:
    """One of them."""
    require(key, name, "read")
    if checked_name(name) not in service.shelf.names():
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
    about(request)["memory"] = asked.model
    require(key, asked.model, "read")
    prompts = _prompts(service, asked)
    _check(service, asked, prompts)
    choices, manner = asked.n or 1, _manner(asked)
    id, created = f"cmpl-{secrets.token_hex(12)}", int(time.time())

    def chunks(memory: KeptMemory) -> Iterator[dict[str, Any]]:
        said = 0
        for number, prompt in enumerate(prompts):
            for index in range(number * choices, (number + 1) * choices):
                drawn = replace(manner, seed=manner.seed + index)
                before = prompt.echo(memory, asked.logprobs) if asked.echo else iter(())
                offset = 0
                for piece in before:
                    yield _chunk(id, created, asked, index, piece, offset)
                    offset += len(piece.text)
                for piece in write(memory, prompt.words, drawn, spaced=prompt.spaced):
                    said += 1
                    yield _chunk(id, created, asked, index, piece, offset)
                    offset += len(piece.text)
                if not manner.words:
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
    found = _joined(events[:-1], len(prompts) * choices, with_probs=asked.logprobs is not None)
    about(request)["words"] = found["usage"]["completion_tokens"]
    return JSONResponse(found)


def _prompts(service: Service, asked: schemas.CompletionRequest) -> list[Prompt]:
    """The prompts, whether text or tokens."""
    given: Any = asked.prompt
    one = isinstance(given, str) or isinstance(given[0], int)
    return [
        of_text(prompt, service.model.tokenizer)
        if isinstance(prompt, str)
        else of_tokens(service.spelling.read(prompt), service.model.tokenizer)
        for prompt in ([given] if one else given)
    ]


def _check(service: Service, asked: schemas.CompletionRequest, prompts: list[Prompt]) -> None:
    limits = service.limits
    if sum(one.length for one in prompts) > limits.ask:
        raise Refused(413, "too_long", f"prompts of more than {limits.ask:,} characters in all")
    words = sum(len(one.words) for one in prompts)
    if asked.echo and asked.logprobs and words > limits.explained:
        raise Refused(
            413,
            "too_long",
            f"{words:,} words with the likeliest others at each; at most {limits.explained} are "
            "taken: ask with logprobs 0, or for less",
        )
    writes = (16 if asked.max_tokens is None else asked.max_tokens) * (asked.n or 1) * len(prompts)
    if writes > 4 * limits.words:
        raise Refused(413, "too_long", f"{writes:,} words to write; at most {4 * limits.words}")


def _manner(asked: schemas.CompletionRequest) -> Manner:
    stop = asked.stop or []
    return Manner(
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
    choices: list[dict[str, Any]] = [
        {"text": "", "index": index, "logprobs": None, "finish_reason": None}
        for index in range(count)
    ]
    for chunk in chunks:
        for part in chunk["choices"]:
            whole = choices[part["index"]]
            whole["text"] += part["text"]
            whole["finish_reason"] = part["finish_reason"] or whole["finish_reason"]
            if with_probs:
                _extend(whole, part["logprobs"])
    return {**chunks[-1], "choices": choices}


def _extend(whole: dict[str, Any], part: dict[str, Any] | None) -> None:
    empty: dict[str, Any] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": None,
        "text_offset": [],
    }
    had = whole["logprobs"] or empty
    if part is None:
        whole["logprobs"] = had
        return
    top = part["top_logprobs"]
    whole["logprobs"] = {
        **{name: had[name] + part[name] for name in ("tokens", "token_logprobs", "text_offset")},
        "top_logprobs": None if top is None else (had["top_logprobs"] or []) + top,
    }
