"""The recurrent network, frozen: native code, no torch; and vectors for OOV words.

What the network would read for a word that it does not know is guessed from how it is spelled.
"""

import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import final

import numpy as np

from unbounded import _native
from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.growable_array import GrowableArray
from unbounded.lm.language_model import HeadedModel, LanguageModel, Shortlist
from unbounded.shapes import Float, Int
from unbounded.states import derived
from unbounded.types import Hidden, Ids, Probs, State

training: int | None = None
"""Threads that an operation of training may use, if it was said how many."""


def set_network_threads(threads: int) -> None:
    """Let one call of the network, and one operation of training, use so many threads.

    What torch reads with is one, if it is there: a stream is a chain of small products, and with a
    second thread that waits without spinning a word took 97 µs instead of 17.
    """
    global training
    training = threads
    _native.set_threads(threads)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


Weights = Mapping[str, np.ndarray]
"""All weights of a recurrent network by the names that torch has for them, and `embedding`."""


@final
class RecurrentModel(HeadedModel):
    """LSTM, GRU or Elman network with adaptive softmax, frozen.

    What it says of a word depends on the words before it and on nothing else, to the last bit: not
    on how the stream is cut, nor on the texts beside it, nor on the number of threads.
    """

    def __init__(
        self, weights: Weights, cell: str, cutoffs: Sequence[int], sentence_end: int
    ) -> None:
        self.weights, self.cell, self.cutoffs = weights, cell, tuple(cutoffs)
        self.base_size, self.width = len(weights["embedding"]) - 1, weights["embedding"].shape[1]
        # The text before the first word is taken for a sentence that has just ended.
        self.sentence_end = sentence_end
        self._zero: State = (np.zeros((1, 1, self.width), np.float32),) * (1 + (cell == "lstm"))
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        self._cell = _native.Cell(cell, *(weights[f"cell.{name}"] for name in names))
        self._softmax = _native.AdaptiveSoftmax(*self.output_layer)

    @property
    def output_layer(self) -> tuple[np.ndarray, list[np.ndarray], Sequence[int]]:
        """The first softmax, two layers of each cluster, and the cut-offs."""
        tails = [
            self.weights[f"head.tail.{i}.{part}.weight"]
            for i in range(len(self.cutoffs) - 1)
            for part in range(2)
        ]
        return self.first_weight, tails, self.cutoffs

    def start(self) -> tuple[Hidden, State]:
        """The hidden state after a sentence end out of nowhere."""
        return self.advance(self._zero, np.array([self.sentence_end]))

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""
        # What a word says to the gates is computed once, however often it comes.
        different, place = np.unique(words, return_inverse=True)
        return self.advance_vectors(state, self.vectors(different), place)

    def vectors(self, words: Ids) -> Hidden:
        """What is read for each word; for every OOV word the vector of `<unk>`."""
        found: Hidden = self.weights["embedding"][np.minimum(words, self.base_size)]
        return found

    def advance_vectors(
        self, state: State, vectors: Float[np.ndarray, "different d"], place: Ids
    ) -> tuple[Hidden, State]:
        """As `advance`, with whatever is to be read for each word: the row at its `place`.

        A state of several streams goes on over as many parts of the words, all of a length.
        """
        after = np.concatenate(state)
        streams = after.shape[1]
        lengths = np.full(streams, len(place) // streams)
        hidden: Hidden = self._cell.advance(vectors, place, lengths, after)
        return hidden, tuple(part[None] for part in after)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for OOV words."""
        return self._softmax.score(hidden, words)[0]

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        return self._softmax.dense(hidden)

    @property
    def first_weight(self) -> Float[np.ndarray, "columns inner"]:
        """The weights of the first softmax."""
        return self.weights["head.head.weight"]

    def outputs(self, hidden: Hidden) -> Float[np.ndarray, "n inner"]:
        """All of a state."""
        return hidden

    def shortlist(self, hidden: Hidden, words: Ids) -> Shortlist:
        """The first softmax at each step, and one word a step under it."""
        prob, share, column, odds = self._softmax.score(hidden, words, odds=True)
        # Numpy calls the integers that come from C++ by another name.
        return Shortlist(column.view(np.int64), odds, share, prob)


OOV_READINGS = ("characters", "unk")
"""How words that the network does not know are read: by their spelling, or all as `<unk>`."""

FEATURES = 4096
"""Prefixes, suffixes, runs of three and four letters, shape and length are hashed to so many."""

RIDGE = 1.0
"""How much the regression is held back, in words; up to 10 it makes little difference."""

DOUBT = 30.0
"""The vector of a word that came so often in training counts half as much as a perfect one."""

FREQUENT = 50
"""One in so many words, the most frequent, is left out: OOV words are not like "the"."""

Vectors = Float[np.ndarray, "n d"]


@final
class Speller:
    """Ridge regression from the spelling of the network's words to their input vectors.

    It is fitted to the difference from `<unk>`, so what no feature tells apart is read as `<unk>`.
    A vector depends on the spelling and on nothing else.
    """

    def __init__(self, lm: RecurrentModel, vocabulary: Vocabulary, key: str | None = None) -> None:
        """Under the `key` of the network, if there is one, the fit is kept for the next time."""
        self._lm, self._vocabulary, self._key = lm, vocabulary, key
        self._unknown = lm.vectors(np.array([lm.base_size]))[0]

    @cached_property
    def _weights(self) -> Vectors:
        """Fitted when the first OOV word is spelled: who meets none need not wait for it."""
        if self._key is None:
            return self._fit()
        found = derived(f"{self._key}-oov", lambda: {"weights": self._fit()})["weights"]
        return np.require(found, np.float32, "C")

    def _fit(self) -> Vectors:
        lm, vocabulary = self._lm, self._vocabulary
        base = np.arange(lm.base_size)
        features, ends = _spell(vocabulary.decode(base))
        # By Zipf's law the word of rank r came about V / r times in training.
        weights = len(base) / (len(base) + DOUBT * (base + 1))
        weights[: len(base) // FREQUENT] = 0
        squares = np.zeros((FEATURES, FEATURES))
        products = np.zeros((FEATURES, lm.width))
        apart = (lm.vectors(base) - self._unknown).astype(np.float64)
        _native.oov_add_up(features, ends, weights, apart, squares, products)
        squares[np.diag_indices(FEATURES)] += RIDGE
        return np.ascontiguousarray(np.linalg.solve(squares, products), np.float32)

    def vectors(self, words: Sequence[str]) -> Vectors:
        """What to read for each word."""
        out = np.tile(self._unknown, (len(words), 1))
        _native.oov_look_up(*_spell(words), self._weights, out)
        return out


@final
class OpenVocabularyModel(LanguageModel):
    """A network as one stream reads it: OOV words get vectors from how they are spelled.

    The network and the speller are frozen and may be shared. Which word an id stands for is the
    stream's own affair, so this view belongs to the stream's vocabulary. Ids beyond it are of words
    that are only asked about: what `naming` was told, or `<unk>`.
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
        self._table = GrowableArray(np.empty((0, lm.width), np.float32))
        self._unmet: Sequence[str] = ()

    def naming(self, words: Sequence[str]) -> "OpenVocabularyModel":
        """The same network, for which the ids that follow the vocabulary's are these words."""
        if not words:
            return self
        view = copy(self)
        view._unmet = words
        return view

    def start(self) -> tuple[Hidden, State]:
        """The network's."""
        return self._lm.start()

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""
        different, place = np.unique(words, return_inverse=True)
        vectors = self._lm.vectors(different)
        oov = (different >= self.base_size) & (different < len(self._vocabulary))
        if oov.any():
            rows = different[oov] - self.base_size
            self._spell_new(int(rows.max()) + 1)
            vectors[oov] = self._table.view[rows]
        unmet = different - len(self._vocabulary)
        named = (unmet >= 0) & (unmet < len(self._unmet))
        if named.any():
            vectors[named] = self._speller.vectors([self._unmet[i] for i in unmet[named]])
        return self._lm.advance_vectors(state, vectors, place)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The network's; zero for OOV words."""
        return self._lm.prob(hidden, words)

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The network's."""
        return self._lm.dense(hidden)

    def _spell_new(self, size: int) -> None:
        """Spell the OOV words that came since the last time; each is spelled once."""
        new = np.arange(len(self._table), size) + self.base_size
        if len(new):
            self._table.append(self._speller.vectors(self._vocabulary.decode(new)))


def _spell(words: Sequence[str]) -> tuple[Int[np.ndarray, " f"], Int[np.ndarray, " n"]]:
    """The features of each word, one word after another, and where each word's end."""
    letters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    return _native.oov_features(letters, lengths, FEATURES)
