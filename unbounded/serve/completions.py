"""`/v1/completions` and `/v1/models` as the official client has them: a memory is a model."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from unbounded.keep import KeptMemory
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder, about, require
from unbounded.serve.asking import readings
from unbounded.serve.documented import refusals
from unbounded.serve.events import DONE, streamed
from unbounded.serve.names import checked_name
from unbounded.serve.places import Placed, place
from unbounded.serve.refusals import Refused
from unbounded.serve.routes import Name
from unbounded.serve.state import Service
from unbounded.serve.stepping import begin_telling
from unbounded.serve.writing import Manner, Piece, top_words, write
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
    prompts = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
    placed = [place(text, service.model.tokenizer, ended=False) for text in prompts]
    _check(service, asked, placed)
    choices, manner = asked.n or 1, _manner(asked)
    id, created = f"cmpl-{secrets.token_hex(12)}", int(time.time())

    def chunks(memory: KeptMemory) -> Iterator[dict[str, Any]]:
        said = 0
        for number, one in enumerate(placed):
            for index in range(number * choices, (number + 1) * choices):
                prompt = echoed(memory, one, asked.logprobs) if asked.echo else []
                drawn = replace(manner, seed=manner.seed + index)
                spaced = not one.text or one.text[-1].isspace()
                offset = 0
                for kind, pieces in (
                    ("prompt", iter(prompt)),
                    ("said", write(memory, one.words, drawn, spaced=spaced)),
                ):
                    for piece in pieces:
                        said += kind == "said"
                        yield _chunk(id, created, asked, index, piece, offset)
                        offset += len(piece.text)
                if not manner.words:
                    yield _chunk(id, created, asked, index, Piece("", 0.0, {}, "length"), None)
        read = sum(len(one.words) for one in placed)
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


def echoed(memory: KeptMemory, placed: Placed, top: int | None) -> list[Piece]:
    """The words of the prompt as pieces of it, each with how likely it was."""
    if not placed.words:
        return [Piece(placed.text, 0.0, {})] if placed.text else []
    probs = np.concatenate([one.prob for one in readings(memory.online, placed.words)])
    others: list[dict[str, float]] = [{} for _ in placed.words]
    if top:
        # What else was likely depends on the step, so that it must be asked for step by step.
        at = memory.online
        for step, word in enumerate(placed.words):
            dense = at.predict().dense(len(at.vocabulary))[0]
            others[step] = top_words(at, dense, top)
            at = at.ahead([word])[1]
    return [
        Piece(text, log_prob, best)
        for text, log_prob, best in zip(
            placed.pieces(), np.log(probs).tolist(), others, strict=True
        )
    ]


def _check(service: Service, asked: schemas.CompletionRequest, placed: list[Placed]) -> None:
    limits = service.limits
    if sum(len(one.text) for one in placed) > limits.ask:
        raise Refused(413, "too_long", f"prompts of more than {limits.ask:,} characters in all")
    words = sum(len(one.words) for one in placed)
    if asked.echo and asked.logprobs and words > limits.explained:
        raise Refused(
            413,
            "too_long",
            f"{words:,} words with the likeliest others at each; at most {limits.explained} are "
            "taken: ask with logprobs 0, or for less",
        )
    writes = (16 if asked.max_tokens is None else asked.max_tokens) * (asked.n or 1) * len(placed)
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
