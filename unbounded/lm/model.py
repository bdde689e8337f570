"""The frozen network as a contract: state in, state out, nothing changes inside."""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from unbounded.lm.encoder import Encoder
from unbounded.lm.head import Head, dense_log_probs, word_log_probs
from unbounded.types import Hidden, Ids, Probs, State


class LanguageModel(ABC):
    """A network that turns words into hidden states and hidden states into probabilities.

    It is frozen and may be shared: whatever it remembers of a stream is in the `State` that the
    caller holds. Words are ids; ids from `base_size` on are strangers, which it reads as one
    unknown word and to which it gives probability zero.
    """

    base_size: int
    width: int
    closed: bool = False
    """Whether it knows every word that there can be, so that none is a stranger."""
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


class HeadedModel(LanguageModel):
    """A network whose output layer can be looked into."""

    head: Head

    def outputs(self, hidden: Hidden) -> Float[np.ndarray, "n inner"]:
        """The part of a state that the output layer reads."""
        return hidden


@final
class RecurrentModel(HeadedModel):
    """LSTM, GRU or Elman network with adaptive softmax, frozen."""

    def __init__(
        self, encoder: Encoder, head: nn.AdaptiveLogSoftmaxWithLoss, sentence_end: int
    ) -> None:
        self.base_size = encoder.size
        self.width = encoder.cell.hidden_size
        self.encoder = encoder.eval().requires_grad_(False)
        self.head: nn.AdaptiveLogSoftmaxWithLoss = head.eval().requires_grad_(False)
        # The text before the first word is taken for a sentence that has just ended.
        self.sentence_end = sentence_end

    def start(self) -> tuple[Hidden, State]:
        """The hidden state after a sentence end out of nowhere."""
        zero = tuple(part.numpy() for part in self.encoder.zero_state(1))
        return self.advance(zero, np.array([self.sentence_end]))

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""
        return self.advance_vectors(state, self.vectors(words))

    def vectors(self, words: Ids) -> Hidden:
        """What is read for each word; for every stranger the vector of `<unk>`."""
        found: Hidden = self.encoder.embedding.weight.numpy()[np.minimum(words, self.base_size)]
        return found

    def advance_vectors(self, state: State, vectors: Hidden) -> tuple[Hidden, State]:
        """As `advance`, with whatever is to be read for each word."""
        if len(vectors) == 0:
            return np.empty((0, self.width), np.float32), state
        with torch.inference_mode():
            read = torch.from_numpy(vectors)[:, None]
            hidden, new = self.encoder(read, tuple(torch.tensor(part) for part in state))
            return hidden[:, 0].numpy(), tuple(part.numpy() for part in new)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for strangers."""
        probs = np.zeros(len(words))
        known = (words >= 0) & (words < self.base_size)
        if known.any():
            with torch.inference_mode():
                rows: Tensor = torch.from_numpy(hidden[known])
                found = word_log_probs(self.head, rows, torch.from_numpy(words[known]))
                probs[known] = found.double().exp().numpy()
        return probs

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        with torch.inference_mode():
            found = dense_log_probs(self.head, torch.from_numpy(hidden))
            return found.double().exp().numpy()
