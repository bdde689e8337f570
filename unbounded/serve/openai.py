"""`/v1/completions`, `chat/completions` and `models` as the official client has them.

A memory is a model; a chat is a completion after the template that the model's tokenizer has.
"""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, final

from fastapi import APIRouter
from fastapi.responses import Response

from unbounded.corpus import Splitter
from unbounded.errors import ModelError
from unbounded.lm import Pretrained
from unbounded.lm.subwords import chat_ends, chat_words
from unbounded.memory import Piece, SamplingParams, generate
from unbounded.memory.sampling import Source
from unbounded.serve import openai_schemas as schemas
from unbounded.serve.guard import Context, Name
from unbounded.serve.limits import Refused, check_length
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import refusals
from unbounded.serve.streaming import begin_pieces, json_answer, streamed
from unbounded.serve.tokens import ByteFallback, Prompt
from unbounded.store.layout import NAME

router = APIRouter(prefix="/v1", tags=["as the official client has it"])

REPLY = 256
"""Words of a reply where nobody says how many; it ends by itself."""


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
    registry, limits, model = context.registry, context.registry.limits, context.registry.model
    _check_right(body, context)
    choices, given = body.best_of or body.n or 1, body.prompts
    check_length("prompts", sum(map(len, given)), limits.ask)
    if (words := body.words * choices * len(given)) > 4 * limits.words:
        raise Refused(413, "too_long", f"{words:,} words to write; at most {4 * limits.words}")
    prompts = await registry.pool.run(lambda: _prompts(model, given))
    # Only now it is known how long they are: a token can be a long word.
    length = sum(len(piece) for prompt in prompts for piece in prompt.pieces)
    check_length("prompts", length, limits.ask)
    words = sum(len(prompt.words) for prompt in prompts) * choices
    if body.echo and body.logprobs and words > limits.explained:
        raise Refused(
            413,
            "too_long",
            f"{words:,} words with the likeliest others at each; at most {limits.explained} are "
            "taken: ask with logprobs 0, or for less",
        )
    top = body.logprobs or 0
    sampling = _sampling(body, body.words, top) if body.words else None
    echo = top if body.echo else None
    writing = Writing(model.tokenizer, prompts, choices, sampling, echo)
    return await _answered(_Completions(body, writing), body, context)


@router.post(
    "/chat/completions",
    response_model=schemas.ChatCompletion,
    responses=refusals(404, body=True, streams=True),
)
async def chat(body: schemas.ChatRequest, context: Context) -> Response:
    """Reply to a conversation; for models with a chat template, others say what is supported."""
    registry, tokenizer = context.registry, context.registry.model.tokenizer
    _check_right(body, context)
    registry.check_there(body.model)
    messages = [{"role": one.role, "content": one.text} for one in body.messages]
    check_length("messages", sum(len(one["content"]) for one in messages), registry.limits.ask)
    try:
        words = await registry.pool.run(lambda: chat_words(tokenizer, messages))
    except ModelError as error:
        raise Refused(422, "no_chat_template", str(error)) from None
    most = body.max_completion_tokens or body.max_tokens or REPLY
    sampling = _sampling(body, most, (body.top_logprobs or 0) if body.logprobs else 0)
    sampling = replace(sampling, stop=sampling.stop + chat_ends(tokenizer))
    writing = Writing(tokenizer, [Prompt.of_words(words)], body.n or 1, sampling)
    return await _answered(_Conversation(body, writing), body, context)


def _check_right(body: schemas.Request, context: Context) -> None:
    context.log["memory"] = body.model
    context.key.require(body.model, "read")


async def _answered(
    answer: "_Completions | _Conversation", body: schemas.Request, context: Context
) -> Response:
    registry = context.registry
    if body.stream:
        return streamed(await begin_pieces(registry, body.model, answer.chunks))
    events = await begin_pieces(registry, body.model, answer.writing.pieces)
    *said, _ = await events.collect()
    found = await registry.pool.run(lambda: answer.whole(said))
    context.log["words"] = found["usage"]["completion_tokens"]
    return await json_answer(registry.pool, found)


def _model(registry: Registry, name: str) -> dict[str, Any]:
    created = int((registry.root / name / NAME).stat().st_mtime)
    return {"id": name, "object": "model", "created": created, "owned_by": "unbounded"}


def _prompts(model: Pretrained, given: list[Any]) -> list[Prompt]:
    tokenizer, bytes_of = model.tokenizer, ByteFallback.of(model)
    return [
        Prompt.of_text(prompt, tokenizer)
        if isinstance(prompt, str)
        else Prompt.of_tokens(prompt, bytes_of, tokenizer)
        for prompt in given
    ]


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


NOTHING = Piece("", 0.0, {}, "length")
"""All of what is written where no word was asked for."""


@dataclass(frozen=True)
class Said:
    """A piece of one choice, where it begins there, and whether it was written, not echoed."""

    index: int
    piece: Piece
    offset: int
    written: bool


@dataclass(frozen=True)
class Writing:
    """What is to be written after each prompt, in so many choices."""

    tokenizer: Splitter
    prompts: list[Prompt]
    choices: int
    sampling: SamplingParams | None
    """None writes nothing."""
    echo: int | None = None
    """Before that, say the prompt, and so many of the likeliest words in the place of each."""

    def pieces(self, source: Source) -> Iterator[Said]:
        """Choice by choice, a piece a token."""
        for index in range(len(self.prompts) * self.choices):
            prompt, offset = self.prompts[index // self.choices], 0
            for piece, written in self._choice(source, prompt, index):
                yield Said(index, piece, offset, written)
                offset += len(piece.text)

    def _choice(self, source: Source, prompt: Prompt, index: int) -> Iterator[tuple[Piece, bool]]:
        if self.echo is not None:
            for piece in prompt.echo(source, self.tokenizer, self.echo):
                yield piece, False
        if self.sampling is None:
            yield NOTHING, False
            return
        assert self.sampling.seed is not None
        drawn = replace(self.sampling, seed=self.sampling.seed + index)
        for piece in generate(source, self.tokenizer, prompt.words, drawn, spaced=prompt.spaced):
            yield piece, True

    def usage(self, written: int) -> dict[str, int]:
        """How many tokens there were."""
        read = sum(prompt.tokens for prompt in self.prompts)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _by_choice(said: list[Said]) -> list[list[Said]]:
    return [list(some) for _, some in groupby(said, key=lambda one: one.index)]


def _shell(prefix: str, kind: str, model: str) -> dict[str, Any]:
    """What all chunks of an answer have in common."""
    name = f"{prefix}-{secrets.token_hex(12)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


@final
class _Completions:
    """What was written after prompts, as the official client reads it: in chunks, or whole."""

    def __init__(self, body: schemas.CompletionRequest, writing: Writing) -> None:
        self.writing = writing
        self._body = body
        self._shell = _shell("cmpl", "text_completion", body.model)

    def chunks(self, source: Source) -> Iterator[dict[str, Any]]:
        """A chunk a token; the last says how many there were, if that is wanted."""
        written = 0
        for said in self.writing.pieces(source):
            written += said.written
            choice = self._choice(said.index, [said])
            if said.piece is NOTHING:
                choice["logprobs"] = None
            yield self._shell | {"choices": [choice]}
        if self._body.tells_usage:
            yield self._shell | {"choices": [], "usage": self.writing.usage(written)}

    def whole(self, said: list[Said]) -> dict[str, Any]:
        """All of it as one answer."""
        kept = enumerate(self._best(_by_choice(said)))
        choices = [self._choice(index, some) for index, some in kept]
        usage = self.writing.usage(sum(one.written for one in said))
        return self._shell | {"choices": choices, "usage": usage}

    def _best(self, said: list[list[Said]]) -> list[list[Said]]:
        """Of each prompt's choices those that are wanted, the likeliest a word first."""
        every, wanted = self.writing.choices, self._body.n or 1
        if every == wanted:
            return said

        def unlikely(some: list[Said]) -> float:
            logs = [one.piece.log_prob for one in some if one.written]
            return -sum(logs) / max(len(logs), 1)

        by_prompt = (said[first : first + every] for first in range(0, len(said), every))
        return [some for choices in by_prompt for some in sorted(choices, key=unlikely)[:wanted]]

    def _choice(self, index: int, said: list[Said]) -> dict[str, Any]:
        probs: dict[str, Any] | None = None
        if self._body.logprobs is not None:
            told = [one for one in said if one.piece is not NOTHING]
            probs = {
                "tokens": [one.piece.text for one in told],
                "token_logprobs": [one.piece.log_prob for one in told],
                "top_logprobs": [one.piece.top for one in told if self._body.logprobs] or None,
                "text_offset": [one.offset for one in told],
            }
        return {
            "text": "".join(one.piece.text for one in said),
            "index": index,
            "logprobs": probs,
            "finish_reason": said[-1].piece.finish,
        }


@final
class _Conversation:
    """What is replied to a conversation, as the official client reads it: in chunks, or whole."""

    def __init__(self, body: schemas.ChatRequest, writing: Writing) -> None:
        self.writing = writing
        self._body = body
        self._shell = _shell("chatcmpl", "chat.completion.chunk", body.model)

    def chunks(self, source: Source) -> Iterator[dict[str, Any]]:
        """Who speaks, then a chunk a token; the last as with completions."""
        written = 0
        for index, said in groupby(self.writing.pieces(source), key=lambda one: one.index):
            yield self._chunk(index, {"role": "assistant", "content": ""}, [])
            for one in said:
                written += 1
                yield self._chunk(index, {"content": one.piece.text}, [one])
        if self._body.tells_usage:
            yield self._shell | {"choices": [], "usage": self.writing.usage(written)}

    def _chunk(self, index: int, delta: dict[str, str], said: list[Said]) -> dict[str, Any]:
        probs = {"content": self._tokens(said)} if self._body.logprobs and said else None
        finish = said[-1].piece.finish if said else None
        choice = {"index": index, "delta": delta, "logprobs": probs, "finish_reason": finish}
        return self._shell | {"choices": [choice]}

    def whole(self, said: list[Said]) -> dict[str, Any]:
        """All of it as one answer."""
        choices = [
            {
                "index": index,
                "message": {
                    "role": "assistant",
                    "content": "".join(one.piece.text for one in some),
                    "refusal": None,
                },
                "logprobs": {"content": self._tokens(some), "refusal": None}
                if self._body.logprobs
                else None,
                "finish_reason": some[-1].piece.finish,
            }
            for index, some in enumerate(_by_choice(said))
        ]
        usage = self.writing.usage(len(said))
        return self._shell | {"object": "chat.completion", "choices": choices, "usage": usage}

    def _tokens(self, said: list[Said]) -> list[dict[str, Any]]:
        return [
            _token(one.piece.text, one.piece.log_prob)
            | {"top_logprobs": [_token(*top) for top in one.piece.top.items()]}
            for one in said
        ]


def _token(text: str, log_prob: float) -> dict[str, Any]:
    return {"token": text, "logprob": log_prob, "bytes": list(text.encode())}
