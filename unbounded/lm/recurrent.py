"""The recurrent network, frozen: native code, no torch."""

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from unbounded import _native
from unbounded.lm.language_model import HeadedModel, Shortlist
from unbounded.lm.learning_head import LearningHead, LearningLayer
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State

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

    def learning_head(self) -> LearningHead:
        """A copy of all of it, beneath it an adapter."""
        return LearningLayer(self.output_layer)

    def shortlist(self, hidden: Hidden, words: Ids) -> Shortlist:
        """The first softmax at each step, and one word a step under it."""
        prob, share, column, odds = self._softmax.score(hidden, words, odds=True)
        # Numpy calls the integers that come from C++ by another name.
        return Shortlist(column.view(np.int64), odds, share, prob)
