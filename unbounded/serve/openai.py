"""`/v1/completions`, `chat/completions` and `models` as the official client has them.

A memory is a model; a chat is a completion after the template that the model's tokenizer has.
"""

import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from fastapi import APIRouter
from fastapi.responses import Response

from unbounded.errors import ModelError
from unbounded.lm.subwords import chat_ends, chat_words
from unbounded.memory import Piece, SamplingParams, generate
from unbounded.memory.sampling import Source
from unbounded.serve import openai_schemas as schemas
from unbounded.serve.limits import Limits
from unbounded.serve.refusals import Refused
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import refusals
from unbounded.serve.security import Context, Name
from unbounded.serve.streaming import begin_pieces, json_answer, streamed
from unbounded.serve.tokens import ByteFallback, Prompt
from unbounded.store.layout import NAME

router = APIRouter(prefix="/v1", tags=["as the official client has it"])

DEFAULT_TOKENS, CHAT_TOKENS = 16, 256
"""Words that are written where nobody says how many; a reply ends by itself."""


@router.get("/models", response_model=schemas.Models, responses=refusals())
async def list_models(context: Context) -> Any:
    """The memories, as models."""
    registry = context.registry
    names = [name for name in registry.names() if context.key.sees(name)]
    return {"object": "list", "data": [_model(registry, name) for name in names]}


@router.get("/models/{name}", response_model=schemas.Model, responses=refusals(named=True))
async def model(name: Name, context: Context) -> Any:
    """One of them."""
    if name not in context.registry.names():
        raise Refused(404, "model_not_found", "there is no memory of that name")
    return _model(context.registry, name)


@router.post(
    "/completions",
    response_model=schemas.Completion,
    response_model_exclude_unset=True,
    responses=refusals(404, body=True, streams=True),
)
async def completions(body: schemas.CompletionRequest, context: Context) -> Response:
    """Go on after a prompt, or score it (`echo`, `logprobs`, `max_tokens` 0)."""
    registry = context.registry
    _check_right(body, context)
    _check(registry.limits, body)
    prompts = await registry.pool.run(lambda: _prompts(registry, body))
    _check_words(registry.limits, body, prompts)
    return await _answered(_Completions(registry, body, prompts), body, context)


@router.post(
    "/chat/completions",
    response_model=schemas.ChatCompletion,
    responses=refusals(404, body=True, streams=True),
)
async def chat(body: schemas.ChatRequest, context: Context) -> Response:
    """Reply to a conversation; for models with a chat template, others say what is supported."""
    registry = context.registry
    _check_right(body, context)
    registry.check_there(body.model)
    conversation = await registry.pool.run(lambda: _Conversation(registry, body))
    return await _answered(conversation, body, context)


def _check_right(body: schemas.Request, context: Context) -> None:
    context.log["memory"] = body.model
    context.key.require(body.model, "read")


async def _answered(
    request: "_Completions | _Conversation", body: schemas.Request, context: Context
) -> Response:
    registry = context.registry
    events = await begin_pieces(registry, body.model, request.chunks)
    if body.stream:
        return streamed(events)
    *chunks, _ = await events.collect()
    found = await registry.pool.run(lambda: request.joined(chunks))
    context.log["words"] = found["usage"]["completion_tokens"]
    return await json_answer(registry.pool, found)


def _model(registry: Registry, name: str) -> dict[str, Any]:
    created = int((registry.root / name / NAME).stat().st_mtime)
    return {"id": name, "object": "model", "created": created, "owned_by": "unbounded"}


def _given(body: schemas.CompletionRequest) -> list[Any]:
    """Each prompt, as it was sent."""
    given: Any = body.prompt
    return [given] if isinstance(given, str) or isinstance(given[0], int) else given


def _prompts(registry: Registry, body: schemas.CompletionRequest) -> list[Prompt]:
    tokenizer, bytes_of = registry.model.tokenizer, ByteFallback.of(registry.model)
    return [
        Prompt.of_text(prompt, tokenizer)
        if isinstance(prompt, str)
        else Prompt.of_tokens(prompt, bytes_of, tokenizer)
        for prompt in _given(body)
    ]


def _check(limits: Limits, body: schemas.CompletionRequest) -> None:
    """Refuse what is too long as it was sent, before anything is made of it."""
    given = _given(body)
    if sum(map(len, given)) > limits.ask:
        _refuse_length(limits)
    choices = body.best_of or body.n or 1
    words = _max_tokens(body) * choices * len(given)
    if words > 4 * limits.words:
        raise Refused(413, "too_long", f"{words:,} words to write; at most {4 * limits.words}")


def _check_words(limits: Limits, body: schemas.CompletionRequest, prompts: list[Prompt]) -> None:
    """Refuse what turns out to be too long: a token can be a long word."""
    if sum(len(piece) for prompt in prompts for piece in prompt.pieces) > limits.ask:
        _refuse_length(limits)
    words = sum(len(prompt.words) for prompt in prompts) * (body.best_of or body.n or 1)
    if body.echo and body.logprobs and words > limits.explained:
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


def _max_tokens(body: schemas.CompletionRequest) -> int:
    return DEFAULT_TOKENS if body.max_tokens is None else body.max_tokens


def _sampling(body: schemas.Request, words: int, top: int) -> SamplingParams:
    stop = body.stop or []
    return SamplingParams(
        words,
        1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        seed=secrets.randbelow(2**32) if body.seed is None else body.seed,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        top=top,
    )


def _shell(prefix: str, kind: str, model: str) -> dict[str, Any]:
    """What all chunks of an answer have in common."""
    name = f"{prefix}-{secrets.token_hex(12)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def _usage(read: int, written: int) -> dict[str, int]:
    """How many words there were."""
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


class _Completions:
    """Prompts to go on with, and the answer in chunks or whole."""

    def __init__(
        self, registry: Registry, body: schemas.CompletionRequest, prompts: list[Prompt]
    ) -> None:
        self._tokenizer = registry.model.tokenizer
        self._body = body
        self._prompts = prompts
        self._choices = body.best_of or body.n or 1
        self._mean: dict[int, float] = {}
        """Of each choice, the mean log-probability of its words."""
        self._shell = _shell("cmpl", "text_completion", body.model)

    def chunks(self, source: Source) -> Iterator[dict[str, Any]]:
        """A chunk a token; the last says how many there were, if that is wanted."""
        body, written = self._body, 0
        words = _max_tokens(body)
        drawing = _sampling(body, words, body.logprobs or 0) if words else None
        for number, prompt in enumerate(self._prompts):
            for index in range(number * self._choices, (number + 1) * self._choices):
                offset = 0
                echo = prompt.echo(source, self._tokenizer, body.logprobs or 0)
                for piece in echo if body.echo else ():
                    yield self._chunk(index, piece, offset)
                    offset += len(piece.text)
                if drawing is None:
                    yield self._chunk(index, Piece("", 0.0, {}, "length"), None)
                    continue
                assert drawing.seed is not None
                drawn = replace(drawing, seed=drawing.seed + index)
                before, total = written, 0.0
                for piece in generate(
                    source, self._tokenizer, prompt.words, drawn, spaced=prompt.spaced
                ):
                    written += 1
                    total += piece.log_prob
                    yield self._chunk(index, piece, offset)
                    offset += len(piece.text)
                self._mean[index] = total / (written - before)
        if not body.stream or (body.stream_options or {}).get("include_usage"):
            read = sum(prompt.tokens for prompt in self._prompts)
            yield self._shell | {"choices": [], "usage": _usage(read, written)}

    def _chunk(self, index: int, piece: Piece, offset: int | None) -> dict[str, Any]:
        probs: dict[str, Any] | None = None
        if self._body.logprobs is not None and offset is not None:
            probs = {
                "tokens": [piece.text],
                "token_logprobs": [piece.log_prob],
                "top_logprobs": [piece.top] if self._body.logprobs else None,
                "text_offset": [offset],
            }
        choice = {"text": piece.text, "index": index, "logprobs": probs}
        return self._shell | {"choices": [choice | {"finish_reason": piece.finish}]}

    def joined(self, chunks: list[dict[str, Any]]) -> dict[str, Any]:
        """All chunks as one answer."""
        by_index: dict[int, list[dict[str, Any]]] = {}
        for chunk in chunks:
            for part in chunk["choices"]:
                by_index.setdefault(part["index"], []).append(part)
        kept = [by_index[index] for index in self._best()]
        choices = [self._choice(index, parts) for index, parts in enumerate(kept)]
        return {**chunks[-1], "choices": choices}

    def _best(self) -> list[int]:
        """Of each prompt's choices those that are wanted, the likeliest a word first."""
        every = range(len(self._prompts) * self._choices)
        if self._choices == (wanted := self._body.n or 1):
            return list(every)
        return [
            index
            for first in every[:: self._choices]
            for index in sorted(
                every[first : first + self._choices], key=lambda one: -self._mean.get(one, 0.0)
            )[:wanted]
        ]

    def _choice(self, index: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
        probs: dict[str, Any] | None = None
        if self._body.logprobs is not None:
            told = [part["logprobs"] for part in parts if part["logprobs"] is not None]
            probs = {
                name: [value for one in told for value in one[name]]
                for name in ("tokens", "token_logprobs", "text_offset")
            }
            tops = [top for one in told for top in one["top_logprobs"] or []]
            probs["top_logprobs"] = tops or None
        return {
            "text": "".join(part["text"] for part in parts),
            "index": index,
            "logprobs": probs,
            "finish_reason": parts[-1]["finish_reason"],
        }


class _Conversation:
    """A conversation to reply to, and the answer in chunks or whole."""

    def __init__(self, registry: Registry, body: schemas.ChatRequest) -> None:
        limits, self._tokenizer = registry.limits, registry.model.tokenizer
        messages = [{"role": one.role, "content": one.text} for one in body.messages]
        if sum(len(one["content"]) for one in messages) > limits.ask:
            raise Refused(
                413, "too_long", f"messages of more than {limits.ask:,} characters in all"
            )
        try:
            self._words = chat_words(self._tokenizer, messages)
        except ModelError as error:
            raise Refused(422, "no_chat_template", str(error)) from None
        self._body = body
        words = body.max_completion_tokens or body.max_tokens or CHAT_TOKENS
        top = (body.top_logprobs or 1) if body.logprobs else 0
        drawing = _sampling(body, words, top)
        self._drawing = replace(drawing, stop=drawing.stop + chat_ends(self._tokenizer))
        self._shell = _shell("chatcmpl", "chat.completion.chunk", body.model)

    def chunks(self, source: Source) -> Iterator[dict[str, Any]]:
        """A chunk a word; the last says how many there were, if that is wanted."""
        body, written = self._body, 0
        for index in range(body.n or 1):
            yield self._chunk(index, {"role": "assistant", "content": ""})
            assert self._drawing.seed is not None
            drawn = replace(self._drawing, seed=self._drawing.seed + index)
            for piece in generate(source, self._tokenizer, self._words, drawn):
                written += 1
                yield self._chunk(index, {"content": piece.text}, piece)
        if not body.stream or (body.stream_options or {}).get("include_usage"):
            yield self._shell | {"choices": [], "usage": _usage(len(self._words), written)}

    def _chunk(
        self, index: int, delta: dict[str, str], piece: Piece | None = None
    ) -> dict[str, Any]:
        probs = None
        if self._body.logprobs and piece is not None:
            likeliest = piece.top if self._body.top_logprobs else {}
            probs = {
                "content": [
                    _token(piece.text, piece.log_prob)
                    | {"top_logprobs": [_token(*one) for one in likeliest.items()]}
                ]
            }
        finish = None if piece is None else piece.finish
        choice = {"index": index, "delta": delta, "logprobs": probs, "finish_reason": finish}
        return self._shell | {"choices": [choice]}

    def joined(self, chunks: list[dict[str, Any]]) -> dict[str, Any]:
        """All chunks as one answer."""
        parts = [part for chunk in chunks for part in chunk["choices"]]
        choices = []
        for index in range(self._body.n or 1):
            mine = [part for part in parts if part["index"] == index]
            text = "".join(part["delta"]["content"] for part in mine)
            told = [one for part in mine if part["logprobs"] for one in part["logprobs"]["content"]]
            choices.append(
                {
                    "index": index,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "logprobs": {"content": told, "refusal": None} if self._body.logprobs else None,
                    "finish_reason": mine[-1]["finish_reason"],
                }
            )
        return {**chunks[-1], "object": "chat.completion", "choices": choices}


def _token(text: str, log_prob: float) -> dict[str, Any]:
    return {"token": text, "logprob": log_prob, "bytes": list(text.encode())}
