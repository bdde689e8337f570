"""The frozen network as a contract: state in, state out, nothing changes inside."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbounded.lm.learning_head import LearningHead
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State


class LanguageModel(ABC):
    """A network that turns words into hidden states and hidden states into probabilities.

    It is frozen and may be shared: whatever it remembers of a stream is in the `State` that the
    caller holds. Words are ids; ids from `base_size` on are OOV words, which it reads as one
    unknown word and to which it gives probability zero.
    """

    base_size: int
    width: int
    closed: bool = False
    """Whether it knows every word that there can be, so that none is an OOV word."""
    key_part: slice = slice(None)
    """The part of a hidden state that a memory is searched by."""

    @property
    def key_width(self) -> int:
        """How wide that part is."""
        return len(range(self.width)[self.key_part])

    @abstractmethod
    def start(self) -> tuple[Hidden, State]:
        """The hidden state before the first word, one row, and the state to go on from."""

    @abstractmethod
    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""

    @abstractmethod
    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step."""

    @abstractmethod
    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""


@dataclass(frozen=True)
class Shortlist:
    """The first softmax, over frequent words and clusters, and each step's word under it."""

    column: Ids
    """Where the word is: its own column, or its cluster's; -1 for an OOV word."""
    odds: Float[np.ndarray, "n columns"]
    """All columns, not normalized; the largest of each step is one."""
    share: Probs
    """The probability of the word's column; zero for an OOV word."""
    prob: Probs
    """The probability of the word itself; zero for an OOV word."""


class HeadedModel(LanguageModel):
    """A network whose output layer can be looked into."""

    cutoffs: Sequence[int]
    """Where the frequent words and each cluster end; the last is `base_size`."""

    @property
    @abstractmethod
    def first_weight(self) -> Float[np.ndarray, "columns inner"]:
        """The weights of the first softmax."""

    @abstractmethod
    def outputs(self, hidden: Hidden) -> Float[np.ndarray, "n inner"]:
        """The part of a state that the output layer reads."""

    @abstractmethod
    def learning_head(self) -> LearningHead:
        """An output layer that begins as this one's, and learns."""

    @abstractmethod
    def shortlist(self, hidden: Hidden, words: Ids) -> Shortlist:
        """The first softmax at each step, and one word a step under it."""
