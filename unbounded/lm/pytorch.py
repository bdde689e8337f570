"""A recurrent network in plain PyTorch: in training, in dynamic evaluation, and as a yardstick."""

from typing import final

import numpy as np
import torch
from torch import nn

from unbounded.lm.encoder import Encoder
from unbounded.lm.head import build_head, dense_log_probs, word_log_probs
from unbounded.lm.language_model import LanguageModel, RecurrentModel
from unbounded.lm.settings import NetworkConfig
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State


def frozen(
    encoder: Encoder, head: nn.AdaptiveLogSoftmaxWithLoss, sentence_end: int
) -> RecurrentModel:
    """The network as it is now, without torch."""
    weights = {
        "embedding": encoder.embedding.weight,
        **{f"cell.{name}": weight for name, weight in encoder.cell.named_parameters()},
        **{f"head.{name}": weight for name, weight in head.named_parameters()},
    }
    arrays = {name: weight.detach().numpy().copy() for name, weight in weights.items()}
    return RecurrentModel(arrays, encoder.kind, head.cutoffs, sentence_end)


@final
class TorchModel(LanguageModel):
    """A copy of a recurrent network whose weights can be changed."""

    def __init__(self, lm: RecurrentModel) -> None:
        self.base_size, self.width = lm.base_size, lm.width
        self.sentence_end = lm.sentence_end
        network = NetworkConfig(lm.cell, lm.width, tuple(lm.cutoffs[:-1]))
        self.encoder = Encoder(lm.base_size, network)
        self.head = build_head(lm.width, lm.base_size, network.cutoffs)
        weights = {name: torch.from_numpy(array) for name, array in lm.weights.items()}
        self.encoder.embedding.load_state_dict({"weight": weights["embedding"]})
        for part, module in (("cell", self.encoder.cell), ("head", self.head)):
            module.load_state_dict(
                {name: weights[f"{part}.{name}"] for name in module.state_dict()}
            )
        self.encoder.eval().requires_grad_(False)
        self.head.eval().requires_grad_(False)

    def start(self) -> tuple[Hidden, State]:
        """The hidden state after a sentence end out of nowhere."""
        zero = tuple(part.numpy() for part in self.encoder.zero_state(1))
        return self.advance(zero, np.array([self.sentence_end]))

    @torch.inference_mode()
    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each word, and the state after the last."""
        if len(words) == 0:
            return np.empty((0, self.width), np.float32), state
        ids = torch.from_numpy(np.minimum(words, self.base_size))
        read = self.encoder.embedding(ids)[:, None]
        hidden, new = self.encoder(read, tuple(torch.tensor(part) for part in state))
        return hidden[:, 0].numpy(), tuple(part.numpy() for part in new)

    @torch.inference_mode()
    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for OOV words."""
        probs = np.zeros(len(words))
        known = (words >= 0) & (words < self.base_size)
        if known.any():
            rows = torch.from_numpy(hidden[known])
            found = word_log_probs(self.head, rows, torch.from_numpy(words[known]))
            probs[known] = found.double().exp().numpy()
        return probs

    @torch.inference_mode()
    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        return dense_log_probs(self.head, torch.from_numpy(hidden)).double().exp().numpy()
