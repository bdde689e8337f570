"""What comes before a completion: text or tokens, and how likely it was."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, repeat

import numpy as np

from unbounded.corpus import Splitter
from unbounded.memory import Memory
from unbounded.serve.asking import readings
from unbounded.serve.byte_fallback import Tokens
from unbounded.serve.places import place
from unbounded.serve.writing import Piece, follows_space, top_words


@dataclass(frozen=True)
class Prompt:
    """Words, and the piece of the prompt that each is; `last` says with which token each ends.

    A word that is spelled takes several tokens: all of its surprise is on the last.
    """

    words: list[str]
    pieces: list[str]
    last: list[int]
    tokens: int
    spaced: bool
    blank: str = ""
    """The whole of a prompt that has no word in it."""

    @property
    def length(self) -> int:
        """Characters."""
        return sum(map(len, self.pieces))

    def echo(self, memory: Memory, top: int | None) -> Iterator[Piece]:
        """The prompt's tokens, each with how likely it was, and the likeliest others."""
        at, nothing = 0, Piece("", 0.0, {"": 0.0} if top else {})
        for (log_prob, best), piece, last in zip(
            _log_probs(memory, self.words, top or 0), self.pieces, self.last, strict=True
        ):
            yield from repeat(nothing, last - at)
            at = last + 1
            yield Piece(piece, log_prob, best)
        # Behind the last word: white space, or tokens that spell none.
        if self.blank:
            yield replace(nothing, text=self.blank)
        yield from repeat(nothing, self.tokens - at)


def of_text(text: str, tokenizer: Splitter) -> Prompt:
    """A text that goes on."""
    placed = place(text, tokenizer, ended=False)
    count, spaced = len(placed.words), follows_space(text, tokenizer)
    blank = "" if count else text
    return Prompt(placed.words, placed.pieces(), list(range(count)), count, spaced, blank)


def of_tokens(tokens: Tokens, splitter: Splitter) -> Prompt:
    """Words that were sent as tokens."""
    text = splitter.text(tokens.words)
    ends = place(text, splitter, ended=False).ends
    # Where the text splits into other words than it was made of, the first piece is all of it.
    if len(ends) != len(tokens.words):
        ends = [len(text)] * len(tokens.words)
    pieces = [text[start:end] for start, end in pairwise([0, *ends])]
    return Prompt(tokens.words, pieces, tokens.last, tokens.count, follows_space(text, splitter))


def _log_probs(
    memory: Memory, words: list[str], top: int
) -> Iterator[tuple[float, dict[str, float]]]:
    if not top:
        found = [one.prob for one in readings(memory.online, words)]
        for log_prob in np.log(np.concatenate(found)).tolist() if found else []:
            yield log_prob, {}
        return
    # What else was likely depends on the step, so that it must be asked for step by step. Between
    # two steps the memory may have learned; what it says of the next is what it knows then.
    stamp: object = None
    for step, word in enumerate(words):
        if stamp != (stamp := memory.version):
            at = memory.online.peek(words[:step])[1] if step else memory.online
        probs = at.predict().dense(len(at.vocabulary))[0]
        number = int(at.ids([word])[0])
        reading, at_next = at.peek([word])
        # From the same row as the likeliest: whoever compares the two finds them equal.
        prob = probs[number] if number < len(probs) else reading.prob[0]
        yield float(np.log(prob)), top_words(at, probs, top)
        at = at_next
