"""Words never read before, letter by letter: what the open protocol has for the uniform."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import numpy as np

from unbounded import _native
from unbounded.corpus import Vocabulary
from unbounded.corpus.tokenizer import LONGEST
from unbounded.errors import CorpusError
from unbounded.experts.counts import reaching
from unbounded.experts.distribution import Alike, Distribution
from unbounded.experts.expert import Expert, replay
from unbounded.shapes import Bool, Float, Int, UInt
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids, Probs

BITS = 8
"""A symbol is a byte; tests use fewer bits, for alphabets that can be written out."""

ORDERS = 6
"""Contexts of the last 0, 1, …, 5 bytes."""

CONTEXTS = {1: ORDERS + 2, 2: ORDERS + 4}
"""And of the letters since the last mark, and of the shape and length of the word so far. From the
second edition on, the last three bytes and shape once more, in the last words only."""

EDITION = 2
"""How new memories spell; those of version 0.2 go on with the first edition."""

CLASSES = 6
"""How often a place was seen: never, once, twice, up to 5, up to 19, more."""

PLACES, KINDS = 24, 6
"""Places in a word that are told apart, and kinds of symbols, none included."""

FIRST = {1: 0.15, 2: 0.075}
"""Every mixing weight before anything was read; for each choice two are added up, or four."""

EVEN = 0.4
"""The share of the words that the network knows, all alike: they are not spelled. Anything from a
tenth to a half is within half a percent of perplexity (docs/log.md)."""

ESCAPE = 2.0**-60
"""The share of plain bytes, all alike, beside the character model: what a float cannot hold as a
product of many chances costs 8 bits a byte and 67 more. Less than half a rounding error of 1, so
that who has the other share has it whole."""


class Written(NamedTuple):
    """Words as symbols: word i has those from `starts[i]` to `starts[i + 1]`.

    Where `shut` is true, it cannot end before that symbol.
    """

    symbols: UInt[np.ndarray, " symbols"]
    starts: Int[np.ndarray, " starts"]
    shut: Bool[np.ndarray, " symbols"]


@final
class CharacterModel:
    """A character model of words that learns as it reads (`native/spelling.h` computes).

    A word is written as its bytes and an end mark, and a byte as its bits, so that each step is a
    choice between two: end or go on, zero or one. The chances of both always sum to one, and so do
    those of all words.
    """

    def __init__(self, bits: int = BITS, edition: int = EDITION) -> None:
        self._bits = bits
        self.slots = np.zeros(1024, np.uint64)
        self.counters = np.zeros(2, np.int64)
        # By the longest context, and by the bit; or by the choice, the place and the last kinds.
        rows = ORDERS + 1 + (1 + bits if edition == 1 else (1 << bits) + PLACES + KINDS**2)
        shape = rows, CONTEXTS[edition], CLASSES
        self.weights = np.full(shape, FIRST[edition], np.float32)

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        """As the native code takes them."""
        return self.slots, self.counters, self.weights

    def load(self, state: Arrays) -> None:
        """Become what had the tables, which may be kept and changed."""
        self.slots, self.counters, self.weights = (
            np.require(state[name], requirements=["C", "W"])
            for name in ("slots", "counters", "weights")
        )

    def logprobs(self, words: Written) -> Float[np.ndarray, " n"]:
        """Of each word; changes nothing."""
        return _native.spelling_ask(*words, self.tables, self._bits)

    def read(
        self, words: Written, new: Bool[np.ndarray, " n"], *, ask: bool = True
    ) -> Float[np.ndarray, " answers"]:
        """Of each word just before it came, if they are asked for; it is then learned if new."""
        self.slots, found = _native.spelling_read(*words, new, self.tables, self._bits, ask=ask)
        return found


@final
class Spelling(Expert):
    """A character model of spelling that has read the network's vocabulary and reads on.

    The network's own words share `EVEN` alike. All others, OOV words, are spelled: each has the
    product of the chances of its bytes and of an end mark, so that all strings together have 1. At
    a prefix that is a word of the network the mark cannot come, because that word is no OOV word;
    the chances of what else may come sum to one, and nothing is wasted on words that it knows.
    An OOV word is learned when it is first read, once: how often a word is used says little about
    how the next new one is spelled (docs/log.md). Whatever the model says, `ESCAPE` of it is a word
    of n bytes with 256⁻ⁿ for every n up to the longest word alike: so the surprise of a word is a
    code length, however long and strange the word.

    >>> vocabulary = Vocabulary(["walk", "walked", "talk", "talked", "balk"])
    >>> spelling = Spelling(vocabulary)
    >>> words = vocabulary.encode(["balked", "xqzvjk", "xqzvjk"])
    >>> probs = spelling.score(np.zeros((3, 1)), words)
    >>> bool(probs[0] > 1000 * probs[1]), bool(probs[2] > 2 * probs[1])
    (True, True)
    """

    def __init__(
        self, vocabulary: Vocabulary, base: Arrays | None = None, edition: int = EDITION
    ) -> None:
        """Learn every word of the network; ids are decoded by `vocabulary`, however it grows.

        Whoever has the state after that gives it as `base`: then all that is learned later follows
        from the words that were read, and is not told again.
        """
        self._vocabulary = vocabulary
        self._base_size = vocabulary.base_size
        words = vocabulary.decode(np.arange(self._base_size))
        # Models that were trained before there was a limit may know longer words.
        words = [word for word in words if len(word.encode()) <= LONGEST]
        self._known = set(words)
        self._read = np.zeros(0, bool)
        self._said = np.empty(0)
        self._model = CharacterModel(edition=edition)
        self._follows = base is not None
        if base is None:
            self._model.read(self._written(words), np.ones(len(words), bool), ask=False)
        else:
            self._model.load(base)

    def predict(self, hidden: Hidden) -> Distribution:
        """How every word is spelled; the same whatever the hidden state."""
        return Alike(len(hidden), self.ask)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Spell, look, learn, word by word."""
        probs = np.full(len(words), EVEN / self._base_size)
        oov = np.flatnonzero(words >= self._base_size)
        if len(oov):
            ids = words[oov]
            self._read = reaching(self._read, ids)
            new = np.zeros(len(ids), bool)
            new[np.unique(ids, return_index=True)[1]] = True
            new &= ~self._read[ids]
            written = self._written(self._vocabulary.decode(ids))
            probs[oov] = _probs(self._model.read(written, new), written)
            self._read[ids] = True
            if new.any():
                self._said = np.empty(0)
        return probs

    def ask(self, words: Ids, unmet: Sequence[str] = ()) -> Probs:
        """The probability of each word, as things stand; changes nothing.

        The ids that follow the vocabulary's are the words never met; others beyond have nothing.
        """
        probs = np.full(len(words), EVEN / self._base_size)
        oov = np.flatnonzero(words >= self._base_size)
        if len(oov):
            numbers = words[oov] - len(self._vocabulary)
            new = (numbers >= 0) & (numbers < len(unmet))
            probs[oov] = 0.0
            probs[oov[new]] = self._spell([unmet[i] for i in numbers[new].tolist()])
            probs[oov[numbers < 0]] = self._met(words[oov[numbers < 0]])
        return probs

    def _met(self, words: Ids) -> Probs:
        """What words of the vocabulary have; each is spelled once until another is learned."""
        # Whoever learns puts another array here, and nothing stale into it.
        said = self._said = reaching(self._said, words)
        missing = np.unique(words[said[words] == 0])
        said[missing] = self._spell(self._vocabulary.decode(missing))
        found: Probs = said[words]
        return found

    def _spell(self, words: Sequence[str]) -> Probs:
        written = self._written(words)
        return _probs(self._model.logprobs(written), written)

    def beginning(self, letters: str) -> float:
        """The probability that an OOV word begins so, whether or not it ends there."""
        # The chance of the end there is known by how much it matters to forbid it.
        symbols, starts, shut = self._written([letters, f"{letters}e", f"{letters}e"])
        shut = shut.copy()
        shut[starts[2:] - 1] = False, True
        asked = Written(symbols, starts, shut)
        whole, may_end, may_not = self._model.logprobs(asked).tolist()
        ends = -math.expm1(min(may_end - may_not, -1e-12))
        return math.exp(min(whole - math.log(ends), 0.0))

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The tables of the character model, and which words were read; words tell it again."""
        if since is not None or self._follows:
            return {}
        return {
            "slots": self._model.slots.copy(),
            "counters": self._model.counters.copy(),
            "weights": self._model.weights.copy(),
            "read": np.trim_zeros(self._read, "b").copy(),
        }

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the first part, and read the words of the others."""
        self._said = np.empty(0)
        if self._follows:
            self._learn_unread(parts)
            return
        self._model.load(parts[0])
        self._read = parts[0]["read"].copy()
        for delta in parts[1:]:
            replay(self, delta)

    def _learn_unread(self, parts: Sequence[Arrays]) -> None:
        """Learn each word of the parts once, in the order of their ids: that of their coming."""
        last = max((int(each["ids"].max(initial=-1)) for each in parts), default=-1)
        new = np.arange(self._base_size, last + 1)
        self._read = reaching(self._read, new)
        new = new[~self._read[new]]
        written = self._written(self._vocabulary.decode(new))
        self._model.read(written, np.ones(len(new), bool), ask=False)
        self._read[new] = True

    def _written(self, words: Iterable[str]) -> Written:
        """Bytes of all words; none ends where a word of the network would."""
        # Only OOV words take this loop, a few in a hundred words.
        symbols, shut, starts = bytearray(), bytearray(), [0]
        for word in words:
            written = word.encode()
            if len(written) > LONGEST:
                raise CorpusError(
                    f"a word of {len(written):,} bytes; words have at most {LONGEST}: split the "
                    "text with a Tokenizer first"
                )
            symbols += written
            # No word is empty.
            before = [
                True,
                *(word[:end] in self._known for end in range(1, len(word))),
            ]
            if len(written) == len(word):
                shut += bytes(before)
            else:
                for letter, closed in zip(word, before, strict=True):
                    shut += bytes([closed]).ljust(len(letter.encode()), b"\0")
            starts.append(len(symbols))
        return Written(
            np.frombuffer(bytes(symbols), np.uint8),
            np.array(starts),
            np.frombuffer(bytes(shut), bool),
        )


def _probs(logprobs: Probs, words: Written) -> Probs:
    """What each OOV word has, from what the character model says of it and from its bytes."""
    sizes = np.diff(words.starts)
    spelled: Probs = (1 - EVEN) * (np.exp(logprobs) + ESCAPE / LONGEST * 256.0**-sizes)
    return spelled
