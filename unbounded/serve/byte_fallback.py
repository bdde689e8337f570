"""Words as numbers that any text can be made of, for clients that send tokens instead of text.

A word of the network is its id. Any other is spelled: a number that says so, its bytes, and a
number that ends it. So a token is a token whatever a memory has learned meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import SENTENCE_END, Vocabulary
from unbounded.corpus.tokenizer import LONGEST
from unbounded.serve.refusals import Refused

BYTES = 256


@dataclass(frozen=True)
class Tokens:
    """Tokens and the words they stand for; `last[i]` is the token with which word i ends."""

    words: list[str]
    last: list[int]
    count: int


@final
class Spelling:
    """From words to tokens and back.

    >>> spelling = Spelling(Vocabulary(["the", "cat"]))
    >>> tokens = spelling.tokens(["the", "ox"]); tokens
    [0, 259, 114, 123, 260]
    >>> spelling.read(tokens)
    Tokens(words=['the', 'ox'], last=[0, 4], count=5)
    """

    def __init__(self, vocabulary: Vocabulary, *, closed: bool = False) -> None:
        """Where a vocabulary is `closed`, there is nothing to be spelled."""
        self._vocabulary = vocabulary
        self._base = vocabulary.base_size
        self._closed = closed
        self._begin, self._end = self._base + BYTES, self._base + BYTES + 1

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._base if self._closed else self._end + 1

    def tokens(self, words: Sequence[str]) -> list[int]:
        """The tokens of words."""
        out: list[int] = []
        for word, number in zip(words, self._vocabulary.lookup(words).tolist(), strict=True):
            if 0 <= number < self._base:
                out.append(number)
            else:
                out += [self._begin, *(self._base + byte for byte in word.encode()), self._end]
        return out

    def read(self, tokens: Sequence[int]) -> Tokens:
        """The words of tokens; refuses what spells none. A word cut off at an end is a word."""
        words: list[str] = []
        last: list[int] = []
        spelled: bytearray | None = None
        numbers = np.array(tokens, np.int64)
        if len(bad := np.flatnonzero((numbers < 0) | (numbers >= self.size))):
            raise Refused(422, "bad_token", f"token {bad[0]} is none; there are {self.size:,}")
        known = iter(self._vocabulary.decode(numbers[numbers < self._base]))
        for at, token in enumerate(tokens):
            if token < self._base:
                words.append(next(known))
                last.append(at)
            elif token == self._begin:
                spelled = bytearray()
            elif token == self._end:
                if spelled:
                    words.append(_word(spelled))
                    last.append(at)
                spelled = None
            elif spelled is not None:
                spelled.append(token - self._base)
        if spelled:
            words.append(_word(spelled))
            last.append(len(tokens) - 1)
        return Tokens(words, last, len(tokens))


def _word(spelled: bytearray) -> str:
    """A word has no white space in it, whatever was spelled; one that no text has is refused."""
    word = "".join(spelled.decode("utf-8", "replace").replace("\0", "\ufffd").split())
    if word == SENTENCE_END or len(word.encode()) > LONGEST:
        raise Refused(
            422,
            "bad_token",
            f"bytes that spell {SENTENCE_END!r}, or more than {LONGEST} of them; no text has such "
            "a word: send text, or the tokens that /tokenize gives",
        )
    return word or "\ufffd"
