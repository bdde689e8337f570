"""`/v1/chat/completions` as the official client has it, for models that have a chat template."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from unbounded.errors import ModelError
from unbounded.lm.chat_template import chat_ends, chat_words
from unbounded.memory import Piece, generate
from unbounded.memory.sampling import Source
from unbounded.serve import openai_schemas as schemas
from unbounded.serve.openai import router as openai_router
from unbounded.serve.openai import sampling, shell, usage
from unbounded.serve.refusals import Refused
from unbounded.serve.registry import Registry
from unbounded.serve.schemas import refusals
from unbounded.serve.security import Context
from unbounded.serve.streaming import begin_pieces, json_answer, streamed

router = APIRouter(prefix="/v1", tags=list(openai_router.tags))

DEFAULT_TOKENS = 256
"""A reply ends by itself; the most that is written where nobody says how much."""


@router.post(
    "/chat/completions",
    response_model=schemas.ChatCompletion,
    responses=refusals(404, 413, 415, body=True, streams=True),
)
async def chat(body: schemas.ChatRequest, context: Context) -> Response:
    """Reply to a conversation; for models with a chat template, others say what is supported."""
    registry = context.registry
    context.log["memory"] = body.model
    context.key.require(body.model, "read")
    registry.check_there(body.model)
    conversation = await registry.pool.run(lambda: _Conversation(registry, body))
    events = await begin_pieces(registry, body.model, conversation.chunks)
    if body.stream:
        return streamed(events)
    *chunks, _ = await events.collect()
    found = conversation.joined(chunks)
    context.log["words"] = found["usage"]["completion_tokens"]
    return await json_answer(registry.pool, found)


class _Conversation:
    """One request, and its answer in chunks or whole."""

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
        words = body.max_completion_tokens or body.max_tokens or DEFAULT_TOKENS
        top = (body.top_logprobs or 1) if body.logprobs else 0
        drawing = sampling(body, words, top)
        self._drawing = replace(drawing, stop=drawing.stop + chat_ends(self._tokenizer))
        self._shell = shell("chatcmpl", "chat.completion.chunk", body.model)

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
            yield self._shell | {"choices": [], "usage": usage(len(self._words), written)}

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
