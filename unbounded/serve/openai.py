"""`/v1/completions` and `/v1/models` as the official client has them: a memory is a model."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import Any, NoReturn

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from unbounded.corpus import Splitter
from unbounded.memory import Piece, SamplingParams, generate
from unbounded.memory.sampling import SHOWN, Source, after, follows_space, since_sentence, top_texts
from unbounded.serve import openai_schemas as schemas
from unbounded.serve.answers import score_blocks, tokenized
from unbounded.serve.limits import Limits
from unbounded.serve.refusals import Refused
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import refusals
from unbounded.serve.security import Context, Name
from unbounded.serve.streaming import begin_pieces, json_answer, streamed
from unbounded.serve.tokens import ByteFallback
from unbounded.store.layout import NAME

router = APIRouter(prefix="/v1", tags=["as the official client has it"])

DEFAULT_TOKENS = 16


@router.get("/models", response_model=schemas.Models, responses=refusals())
async def list_models(context: Context) -> Any:
    """The memories, as models."""
    registry = context.registry
    names = [name for name in registry.names() if context.key.sees(name)]
    return {"object": "list", "data": [_model(registry, name) for name in names]}


@router.get("/models/{name}", response_model=schemas.Model, responses=refusals(404, named=True))
async def model(name: Name, context: Context) -> Any:
    """One of them."""
    if name not in context.registry.names():
        raise Refused(404, "model_not_found", "there is no memory of that name")
    return _model(context.registry, name)


@router.post(
    "/completions",
    response_model=schemas.Completion,
    response_model_exclude_unset=True,
    responses=refusals(404, 413, 415, body=True, streams=True),
)
async def completions(body: schemas.CompletionRequest, context: Context) -> Response:
    """Go on after a prompt, or score it (`echo`, `logprobs`, `max_tokens` 0)."""
    registry = context.registry
    context.log["memory"] = body.model
    context.key.require(body.model, "read")
    _check(registry.limits, body)
    prompts = await registry.pool.run(lambda: _prompts(registry, body))
    _check_words(registry.limits, body, prompts)
    request = _Request(registry, body, prompts)
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


# Prompts: text or tokens.


@dataclass(frozen=True)
class Prompt:
    """Words, and the piece of the prompt that each is; `last` says with which token each ends.

    A word that falls back to bytes takes several tokens: all of its surprise is on the last.
    """

    words: list[str]
    pieces: list[str]
    last: list[int]
    tokens: int
    spaced: bool
    blank: str = ""
    """The whole of a prompt that has no word in it."""

    @staticmethod
    def of_text(text: str, tokenizer: Splitter) -> "Prompt":
        """A text that goes on."""
        spans = tokenized(text, tokenizer, ended=False)
        count, spaced = len(spans.words), follows_space(text, tokenizer)
        blank = "" if count else text
        return Prompt(spans.words, spans.pieces(), list(range(count)), count, spaced, blank)

    @staticmethod
    def of_tokens(tokens: list[int], bytes_of: ByteFallback, tokenizer: Splitter) -> "Prompt":
        """Words that were sent as tokens."""
        words, last = bytes_of.decode(tokens)
        text = tokenizer.text(words)
        ends = tokenized(text, tokenizer, ended=False).ends
        # Where the text splits into other words than it was made of, the first piece is all of it.
        if len(ends) != len(words):
            ends = [len(text)] * len(words)
        pieces = [text[start:end] for start, end in pairwise([0, *ends])]
        return Prompt(words, pieces, last, len(tokens), follows_space(text, tokenizer))

    def echo(self, source: Source, splitter: Splitter, top: int) -> Iterator[Piece]:
        """The prompt's tokens, each with how likely it was, and the likeliest others."""
        at, nothing = 0, Piece("", 0.0, {"": 0.0} if top else {})
        for (log_prob, best), piece, last in zip(
            *(_log_probs(source, splitter, self.words, self.pieces, top), self.pieces, self.last),
            strict=True,
        ):
            yield from repeat(nothing, last - at)
            at = last + 1
            yield Piece(piece, log_prob, best)
        # Behind the last word: white space, or tokens that make none.
        if self.blank:
            yield replace(nothing, text=self.blank)
        yield from repeat(nothing, self.tokens - at)


def _log_probs(
    source: Source, splitter: Splitter, words: list[str], pieces: list[str], top: int
) -> Iterator[tuple[float, dict[str, float]]]:
    if not top:
        for reading in list(score_blocks(source.online, words)):
            for log_prob in np.log(reading.prob).tolist():
                yield log_prob, {}
        return
    # What else was likely depends on the step, so that it must be asked for step by step. Between
    # two steps the memory may have learned; what it says of the next is what it knows then.
    version: object = None
    for step, word in enumerate(words):
        if version != (version := source.version):
            model = after(source.online, words[:step])
        probs = model.predict().dense(len(model.vocabulary))[0]
        number = int(model.ids([word])[0][0])
        reading, then = model.peek([word])
        # From the same row as the likeliest: whoever compares the two finds them equal.
        prob = probs[number] if number < len(probs) else reading.prob[0]
        before = since_sentence(words[:step])
        at = len(splitter.text(before))

        def instead(word: str, before: list[str] = before, at: int = at) -> str:
            return splitter.text([*before, word[:SHOWN]])[at:]

        log_prob = float(np.log(prob))
        best = top_texts(model, probs, top, number, pieces[step], instead)
        yield log_prob, {pieces[step]: log_prob} | best
        model = then


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


def sampling(
    body: schemas.CompletionRequest | schemas.ChatRequest, words: int, top: int
) -> SamplingParams:
    """How so many words are drawn, with the likeliest named."""
    stop = body.stop or []
    return SamplingParams(
        words,
        1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        seed=secrets.randbelow(2**32) if body.seed is None else body.seed,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        top=top,
    )


def shell(prefix: str, kind: str, model: str) -> dict[str, Any]:
    """What all chunks of an answer have in common."""
    name = f"{prefix}-{secrets.token_hex(12)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def usage(read: int, written: int) -> dict[str, int]:
    """How many words there were."""
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


class _Request:
    """One request, and its answer in chunks or whole."""

    def __init__(
        self, registry: Registry, body: schemas.CompletionRequest, prompts: list[Prompt]
    ) -> None:
        self._tokenizer = registry.model.tokenizer
        self._body = body
        self._prompts = prompts
        self._choices = body.best_of or body.n or 1
        self._mean: dict[int, float] = {}
        """Of each choice, the mean log-probability of its words."""
        self._shell = shell("cmpl", "text_completion", body.model)

    def chunks(self, source: Source) -> Iterator[dict[str, Any]]:
        """A chunk a token; the last says how many there were, if that is wanted."""
        body, written = self._body, 0
        words = _max_tokens(body)
        drawing = sampling(body, words, body.logprobs or 0) if words else None
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
            yield self._shell | {"choices": [], "usage": usage(read, written)}

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
