"""Words as tokens, and prompts of both: `/tokenize`, `/detokenize`, `/tokenizer_info`.

A word of the network is its id. Any other falls back to bytes: a number that says so, its bytes,
and a number that ends it. So a token is a token whatever a memory has learned meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import Annotated, Any, final

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from unbounded.corpus import SENTENCE_END, Splitter, Vocabulary
from unbounded.corpus.tokenizer import LONGEST
from unbounded.lm import Pretrained
from unbounded.memory import Piece
from unbounded.memory.prediction import peeked
from unbounded.memory.sampling import SHOWN, Source, follows_space, since_sentence, steps, top_texts
from unbounded.model import OnlineModel, Reading
from unbounded.serve.guard import Context
from unbounded.serve.limits import Refused, check_length
from unbounded.serve.schemas import TEXT, Token, refusals
from unbounded.serve.streaming import json_answer

router = APIRouter(tags=["tokens"])

BYTES = 256

BLOCK = 512
"""Words that are scored at once."""

END = "\x03"
"""How a client writes a sentence end by name: the character for the end of a text, which no text
has. Its name among words, `</s>`, is four words of a text like any other."""


@final
class ByteFallback:
    """From words to tokens and back.

    >>> fallback = ByteFallback(Vocabulary(["the", "cat"]))
    >>> tokens = fallback.encode(["the", "ox"]); tokens
    [0, 259, 114, 123, 260]
    >>> fallback.decode(tokens)
    (['the', 'ox'], [0, 4])
    """

    def __init__(self, vocabulary: Vocabulary, *, closed: bool = False) -> None:
        """Where a vocabulary is `closed`, no word needs bytes."""
        self._vocabulary = vocabulary
        self._base = vocabulary.base_size
        self._begin, self._end = self._base + BYTES, self._base + BYTES + 1
        self.size = self._base if closed else self._end + 1
        """How many tokens there are."""

    @staticmethod
    def of(model: Pretrained) -> "ByteFallback":
        """The tokens of a model."""
        return ByteFallback(model.vocabulary, closed=model.lm.closed)

    def encode(self, words: Sequence[str]) -> list[int]:
        """The tokens of words."""
        out: list[int] = []
        for word, number in zip(words, self._vocabulary.lookup(words).tolist(), strict=True):
            if 0 <= number < self._base:
                out.append(number)
            else:
                out += [self._begin, *(self._base + byte for byte in word.encode()), self._end]
        return out

    def decode(self, tokens: Sequence[int]) -> tuple[list[str], list[int]]:
        """The words of tokens, and with which token each ends; refuses what makes none.

        A word cut off at an end is a word.
        """
        words: list[str] = []
        last: list[int] = []
        word: bytearray | None = None
        numbers = np.array(tokens, np.int64)
        if len(bad := np.flatnonzero((numbers < 0) | (numbers >= self.size))):
            raise Refused(422, "bad_token", f"token {bad[0]} is none; there are {self.size:,}")
        known = iter(self._vocabulary.decode(numbers[numbers < self._base]))
        for at, token in enumerate(tokens):
            if token < self._base:
                words.append(next(known))
                last.append(at)
            elif token == self._begin:
                word = bytearray()
            elif token == self._end:
                if word:
                    words.append(_word(word))
                    last.append(at)
                word = None
            elif word is not None:
                word.append(token - self._base)
        if word:
            words.append(_word(word))
            last.append(len(tokens) - 1)
        return words, last


def _word(data: bytearray) -> str:
    """A word has no white space in it, whatever was sent; one that no text has is refused."""
    word = "".join(data.decode("utf-8", "replace").replace("\0", "\ufffd").split())
    if word == SENTENCE_END or len(word.encode()) > LONGEST:
        raise Refused(
            422,
            "bad_token",
            f"bytes of {SENTENCE_END!r}, or more than {LONGEST} of them; no text has such "
            "a word: send text, or the tokens that /tokenize gives",
        )
    return word or "\ufffd"


@dataclass(frozen=True)
class Spans:
    """The words of a text, and the first character of each and the one after its last."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def pieces(self) -> list[str]:
        """The text cut behind each word; put together again it is the text."""
        cuts = [0, *self.ends[:-1], len(self.text)] if self.words else []
        return [self.text[start:end] for start, end in pairwise(cuts)]


def tokenized(text: str, tokenizer: Splitter, *, ended: bool) -> Spans:
    """Split a text into words, a sentence a line, with where each stands.

    `ended` says whether the last line has ended even if no line feed says so.

    >>> from unbounded.corpus import Tokenizer
    >>> spans = tokenized("The cat.\\nIt", Tokenizer(), ended=False)
    >>> list(zip(spans.words, spans.starts, spans.ends))[2:]
    [('.', 7, 8), ('</s>', 8, 9), ('it', 9, 11)]
    >>> spans.pieces()
    ['The', ' cat', '.', '\\n', 'It']
    """
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    lines, at = text.split("\n"), 0
    for number, line in enumerate(lines):
        found = tokenizer.words(line)
        for start, end in tokenizer.spans(line):
            starts.append(at + start)
            ends.append(at + end)
        words += found
        last = number == len(lines) - 1
        if found and (ended or not last):
            words.append(SENTENCE_END)
            starts.append(at + len(line))
            ends.append(at + len(line) + (0 if last else 1))
        at += len(line) + 1
    return Spans(text, words, starts, ends)


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

    @staticmethod
    def of_words(words: list[str]) -> "Prompt":
        """Words that nobody wants to see again."""
        return Prompt(words, [], [], len(words), spaced=False)

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


def score_blocks(model: OnlineModel, words: list[str]) -> Iterator[Reading]:
    """Score words without learning any of them, a block at a time."""
    starts = range(0, len(words), BLOCK)
    return peeked(model, (words[start : start + BLOCK] for start in starts))


def _log_probs(
    source: Source, splitter: Splitter, words: list[str], pieces: list[str], top: int
) -> Iterator[tuple[float, dict[str, float]]]:
    if not top:
        for reading in list(score_blocks(source.online, words)):
            for log_prob in np.log(reading.prob).tolist():
                yield log_prob, {}
        return
    # What else was likely depends on the step, so that it must be asked for step by step.
    before: list[str] = []
    for word, piece, (model, probs) in zip(words, pieces, steps(source, before), strict=False):
        number = int(model.ids([word])[0][0])
        # From the same row as the likeliest: whoever compares the two finds them equal.
        prob = probs[number] if number < len(probs) else model.peek([word])[0].prob[0]
        sentence = since_sentence(before)
        at = len(splitter.text(sentence))

        def instead(word: str, sentence: list[str] = sentence, at: int = at) -> str:
            return splitter.text([*sentence, word[:SHOWN]])[at:]

        log_prob = float(np.log(prob))
        yield log_prob, {piece: log_prob} | top_texts(model, probs, top, number, piece, instead)
        before.append(word)


# Routes.


class TokenizeRequest(BaseModel):
    """A text to be cut into tokens; other members are taken and ignored."""

    prompt: Annotated[str, Field(pattern=TEXT, examples=["The zorble"])]


class TokenizeAnswer(BaseModel):
    """Its tokens."""

    tokens: list[int]
    count: int
    max_model_len: int


class DetokenizeRequest(BaseModel):
    """Tokens to be put together."""

    tokens: Annotated[list[Token], Field(max_length=100_000, examples=[[1, 2]], fail_fast=True)]


class DetokenizeAnswer(BaseModel):
    """Their text."""

    prompt: str


class TokenizerInfo(BaseModel):
    """What tokens there are."""

    tokenizer_class: str
    eos_token: str
    vocab_size: int
    model_max_length: int


@router.get("/tokenizer_info", response_model=TokenizerInfo, responses=refusals())
async def tokenizer_info(context: Context) -> Any:
    """What tokens there are: the network's words, and bytes for others if there are any."""
    model = context.registry.model
    return {
        "tokenizer_class": "pieces" if model.lm.closed else "words",
        "eos_token": END,
        "vocab_size": ByteFallback.of(model).size,
        "model_max_length": context.registry.limits.explained,
    }


@router.post("/tokenize", response_model=TokenizeAnswer, responses=refusals(body=True))
async def tokenize(body: TokenizeRequest, context: Context) -> Response:
    """A text as tokens; a line feed is the end of a sentence."""
    registry = context.registry
    check_length("a text", len(body.prompt), registry.limits.ask)

    def work() -> list[int]:
        words = [SENTENCE_END]
        if body.prompt != END:
            words = tokenized(body.prompt, registry.model.tokenizer, ended=False).words
        return ByteFallback.of(registry.model).encode(words)

    tokens = await registry.pool.run(work)
    found = {"tokens": tokens, "count": len(tokens), "max_model_len": registry.limits.explained}
    return await json_answer(registry.pool, found)


@router.post("/detokenize", response_model=DetokenizeAnswer, responses=refusals(body=True))
async def detokenize(body: DetokenizeRequest, context: Context) -> Any:
    """Tokens as text that is pleasant to read."""
    registry = context.registry
    check_length("a text", len(body.tokens), registry.limits.ask)

    def work() -> str:
        return registry.model.tokenizer.text(ByteFallback.of(registry.model).decode(body.tokens)[0])

    return {"prompt": await registry.pool.run(work)}
