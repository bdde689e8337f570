"""Vectors for strangers: what the network would read, guessed from how a word is spelled."""

from collections.abc import Sequence
from typing import final, no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float, Int

from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.lm.model import LanguageModel, RecurrentModel
from unbounded.types import Hidden, Ids, Probs, State

STRANGERS = ("characters", "unk")
"""How words that the network does not know are read: by their spelling, or all as `<unk>`."""

FEATURES = 4096
"""Prefixes, suffixes, runs of three and four letters, shape and length are hashed to so many."""

RIDGE = 1.0
"""How much the regression is held back, in words; up to 10 it makes little difference."""

DOUBT = 30.0
"""The vector of a word that came so often in training counts half as much as a perfect one."""

FREQUENT = 50
"""One in so many words, the most frequent, is left out: strangers are not like "the"."""

Vectors = Float[np.ndarray, "n d"]


@final
class Speller:
    """Ridge regression from the spelling of the network's words to their input vectors.

    It is fitted to the difference from `<unk>`, so what no feature tells apart is read as `<unk>`.
    A vector depends on the spelling and on nothing else.
    """

    def __init__(self, lm: RecurrentModel, vocabulary: Vocabulary) -> None:
        base = np.arange(lm.base_size)
        self._unknown = lm.vectors(np.array([lm.base_size]))[0]
        features, ends = _spell(vocabulary.decode(base))
        # By Zipf's law the word of rank r came about V / r times in training.
        weights = len(base) / (len(base) + DOUBT * (base + 1))
        weights[: len(base) // FREQUENT] = 0
        squares = np.zeros((FEATURES, FEATURES))
        products = np.zeros((FEATURES, lm.width))
        apart = (lm.vectors(base) - self._unknown).astype(np.float64)
        _add_up(features, ends, weights, apart, squares, products)
        squares[np.diag_indices(FEATURES)] += RIDGE
        lower = torch.linalg.cholesky(torch.from_numpy(squares))
        solved = torch.cholesky_solve(torch.from_numpy(products), lower)
        # By rows: a look-up adds up whole ones, and the solver hands out columns.
        self._weights = np.ascontiguousarray(solved.numpy(), np.float32)

    def vectors(self, words: Sequence[str]) -> Vectors:
        """What to read for each word."""
        out = np.tile(self._unknown, (len(words), 1))
        _look_up(*_spell(words), self._weights, out)
        return out


@final
class Spelled(LanguageModel):
    """A network as one stream reads it: strangers get vectors from how they are spelled.

    The network and the speller are frozen and may be shared. Which word an id stands for is the
    stream's own affair, so this view belongs to the stream's vocabulary.
    """

    def __init__(self, lm: RecurrentModel, speller: Speller, vocabulary: Vocabulary) -> None:
        if vocabulary.base_size != lm.base_size:
            raise SettingError(
                f"a vocabulary of {vocabulary.base_size:,} base words for a network of "
                f"{lm.base_size:,}; give the one it was trained with"
            )
        self.base_size, self.width = lm.base_size, lm.width
        self._lm = lm
        self._speller = speller
        self._vocabulary = vocabulary
        self._table = np.empty((64, lm.width), np.float32)
        self._spelled = 0

    def start(self) -> tuple[Hidden, State]:
        """The network's."""
        return self._lm.start()

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""
        vectors = self._lm.vectors(words)
        strange = words >= self.base_size
        if strange.any():
            rows = words[strange] - self.base_size
            self._reach(int(rows.max()) + 1)
            vectors[strange] = self._table[rows]
        return self._lm.advance_vectors(state, vectors)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The network's; zero for strangers."""
        return self._lm.prob(hidden, words)

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The network's."""
        return self._lm.dense(hidden)

    def _reach(self, size: int) -> None:
        """Spell the strangers that came since the last time; each is spelled once."""
        if size <= self._spelled:
            return
        new = self._vocabulary.decode(np.arange(self._spelled, size) + self.base_size)
        if size > len(self._table):
            # Doubling keeps growth by one word at a time linear over all.
            grown = np.empty((max(size, 2 * len(self._table)), self.width), np.float32)
            grown[: self._spelled] = self._table[: self._spelled]
            self._table = grown
        self._table[self._spelled : size] = self._speller.vectors(new)
        self._spelled = size


def _spell(words: Sequence[str]) -> tuple[Int[np.ndarray, " f"], Int[np.ndarray, " n"]]:
    """The features of each word, one word after another, and where each word's end."""
    letters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    features = np.empty(int((2 * lengths + EXTRA).sum()), np.int64)
    ends = np.empty(len(words), np.int64)
    used = _features(letters, lengths, features, ends)
    return features[:used], ends


PREFIXES, SUFFIXES = 4, 5
EXTRA = PREFIXES + SUFFIXES + 3
"""A word of n letters has at most 2 n − 1 runs of three and four with its two edges, and these."""

PREFIX, SUFFIX, RUN, SHAPE, LENGTH, DIGITS = range(1, 7)
EDGE = 0


@numba.njit(cache=True, nogil=True)
@no_type_check
def _mix(key, letter):
    key = (key ^ np.uint64(letter)) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(29))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _digit(letter):
    return 48 <= letter <= 57


@numba.njit(cache=True, nogil=True)
@no_type_check
def _class(letter):
    """Digits alike, capitals alike, other letters alike; signs as they are."""
    if _digit(letter):
        return 48
    if 65 <= letter <= 90:
        return 65
    return 97 if 97 <= letter <= 122 or letter > 127 else letter


@numba.njit(cache=True, nogil=True)
@no_type_check
def _features(letters, lengths, features, ends):
    """Hash what is to be seen of each word; how many features there are in all."""
    size = np.uint64(FEATURES)
    used, begin = 0, 0
    for i in range(len(lengths)):
        length = lengths[i]
        word = letters[begin : begin + length]
        begin += length
        key = _mix(np.uint64(PREFIX), 0)
        for n in range(min(PREFIXES, length)):
            key = _mix(key, word[n])
            features[used] = key % size
            used += 1
        key = _mix(np.uint64(SUFFIX), 0)
        for n in range(min(SUFFIXES, length)):
            key = _mix(key, word[length - 1 - n])
            features[used] = key % size
            used += 1
        for run in range(3, 5):
            for first in range(-1, length + 2 - run):
                key = _mix(np.uint64(RUN), run)
                for at in range(first, first + run):
                    key = _mix(key, word[at] if 0 <= at < length else EDGE)
                features[used] = key % size
                used += 1
        shape, last, digits = _mix(np.uint64(SHAPE), 0), -1, 0
        for n in range(length):
            kind = _class(word[n])
            digits += _digit(word[n])
            if kind != last:
                shape = _mix(shape, kind)
            last = kind
        features[used] = shape % size
        features[used + 1] = _mix(_mix(np.uint64(LENGTH), 0), min(length, 12)) % size
        features[used + 2] = _mix(_mix(np.uint64(DIGITS), 0), min(digits, 12)) % size
        used += 3
        ends[i] = used
    return used


@numba.njit(cache=True, nogil=True)
@no_type_check
def _add_up(features, ends, weights, apart, squares, products):
    """The two sums of a weighted least squares: features by features, features by vectors."""
    begin = 0
    for i in range(len(ends)):
        mine = features[begin : ends[i]]
        begin = ends[i]
        share = weights[i] / len(mine)
        scale = weights[i] / np.sqrt(len(mine))
        if weights[i] > 0.0:
            vector = apart[i]
            for a in mine:
                row, product = squares[a], products[a]
                for b in mine:
                    row[b] += share
                for j in range(len(vector)):
                    product[j] += scale * vector[j]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _look_up(features, ends, weights, out):
    """Add to each row what its features say; word by word, so that its neighbors do not matter."""
    begin = 0
    for i in range(len(ends)):
        row = out[i]
        scale = np.float32(1.0 / np.sqrt(ends[i] - begin))
        for feature in features[begin : ends[i]]:
            said = weights[feature]
            for j in range(len(row)):
                row[j] += scale * said[j]
        begin = ends[i]
