"""Words never read before, letter by letter: what the open protocol has for the uniform."""

from collections.abc import Iterable, Mapping
from typing import final

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.corpus.tokenizer import LONGEST
from unbounded.errors import CorpusError
from unbounded.experts import letters
from unbounded.experts.distribution import Dense, Distribution
from unbounded.experts.expert import Expert
from unbounded.shapes import Bool, Float, Int
from unbounded.types import Hidden, Ids, Probs

EVEN = 0.4
"""The share of the words that the network knows, all alike: they are not spelled. Anything from a
tenth to a half is within half a percent of perplexity (docs/log.md)."""

ESCAPE = 2.0**-60
"""The share of plain bytes, all alike, beside the character model: what a float cannot hold as a
product of many chances costs 8 bits a byte and 67 more. Less than half a rounding error of 1, so
that who has the other share has it whole."""


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
        self, vocabulary: Vocabulary, base: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Learn every word of the network; ids are decoded by `vocabulary`, however it grows.

        Whoever has the state after that gives it as `base`.
        """
        self._vocabulary = vocabulary
        self._base_size = vocabulary.base_size
        words = vocabulary.decode(np.arange(self._base_size))
        # Models that were trained before there was a limit may know longer words.
        words = [word for word in words if len(word.encode()) <= LONGEST]
        self._known = set(words)
        self._read = np.zeros(0, bool)
        self._slots, self._counters, self._weights = letters.new_tables()
        if base is None:
            self._learn(words, np.ones(len(words), bool), np.empty(0))
        else:
            self._slots, self._counters, self._weights = (
                np.require(base[name], requirements=["C", "W"])
                for name in ("slots", "counters", "weights")
            )

    def predict(self, hidden: Hidden) -> Distribution:
        """How every word is spelled; the same whatever the hidden state."""
        return Spelled(self, len(hidden))

    def observe(self, hidden: Hidden, words: Ids) -> None:
        """Learn the OOV words that were not read before."""
        self.score(hidden, words)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Spell, look, learn, word by word."""
        probs = np.full(len(words), EVEN / self._base_size)
        oov = np.flatnonzero(words >= self._base_size)
        if len(oov):
            ids = words[oov]
            self._reach(int(ids.max()) + 1)
            new = np.zeros(len(ids), bool)
            new[np.unique(ids, return_index=True)[1]] = True
            new &= ~self._read[ids]
            nats = np.empty(len(ids))
            probs[oov] = _probs(nats, self._learn(self._vocabulary.decode(ids), new, nats))
            self._read[ids] = True
        return probs

    def ask(self, words: Ids) -> Probs:
        """The probability of each word, as things stand; changes nothing."""
        probs = np.full(len(words), EVEN / self._base_size)
        oov = np.flatnonzero(words >= self._base_size)
        if len(oov):
            ids = words[oov]
            met = ids < len(self._vocabulary)
            symbols, starts, shut = self._written(self._vocabulary.decode(ids[met]))
            nats = np.empty(len(starts) - 1)
            tables = (self._slots, self._counters, self._weights)
            letters.ask(symbols, starts, shut, *tables, letters.BITS, nats)
            probs[oov] = 0.0
            probs[oov[met]] = _probs(nats, np.diff(starts))
        return probs

    def state(self) -> dict[str, np.ndarray]:
        """The tables of the character model, and which words were read."""
        return {
            "slots": self._slots.copy(),
            "counters": self._counters.copy(),
            "weights": self._weights.copy(),
            "read": self._read.copy(),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._slots = state["slots"].copy()
        self._counters = state["counters"].copy()
        self._weights = state["weights"].copy()
        self._read = state["read"].copy()

    def _learn(
        self, words: list[str], new: Bool[np.ndarray, " n"], nats: Float[np.ndarray, " room"]
    ) -> Int[np.ndarray, " n"]:
        """Learn what is new; fill `nats`, if it has room, with those of each word before that.

        Returns how many bytes each word has.
        """
        symbols, starts, shut = self._written(words)
        tables = (self._slots, self._counters, self._weights)
        self._slots = letters.read(symbols, starts, shut, new, *tables, letters.BITS, nats)
        return np.diff(starts)

    def _written(
        self, words: Iterable[str]
    ) -> tuple[letters.Symbols, letters.Starts, letters.Shut]:
        """Bytes of all words, where each begins, and before which bytes a word cannot end."""
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
        return (
            np.frombuffer(bytes(symbols), np.uint8),
            np.array(starts),
            np.frombuffer(bytes(shut), bool),
        )

    def _reach(self, size: int) -> None:
        if size > len(self._read):
            grown = np.zeros(max(size, 2 * len(self._read)), bool)
            grown[: len(self._read)] = self._read
            self._read = grown


@final
class Spelled(Distribution):
    """How words are spelled, alike at every step; strings without a number have the rest."""

    def __init__(self, spelling: Spelling, steps: int) -> None:
        self._spelling = spelling
        self._steps = steps

    def prob(self, words: Ids) -> Probs:
        """The probability of one word a step; zero for a number without a word."""
        return self._spelling.ask(words)

    def dense(self, size: int) -> Dense:
        """The probability of each of the first `size` words; what is left is for all others."""
        return np.tile(self._spelling.ask(np.arange(size)), (self._steps, 1))


def _probs(nats: Probs, sizes: Int[np.ndarray, " n"]) -> Probs:
    """What each OOV word has, from its nats under the character model and its bytes."""
    spelled: Probs = (1 - EVEN) * (np.exp(-nats) + ESCAPE / LONGEST * 256.0**-sizes)
    return spelled
