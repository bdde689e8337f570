"""A recurrent network in PyTorch: cell, output layer, and how both become a model of ours.

Training uses torch's own `AdaptiveLogSoftmaxWithLoss`. Who asks for probabilities only skips what
training needs, a full table of log-probabilities a cluster.
"""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from unbounded.lm.devices import hold_torch
from unbounded.lm.language_model import LanguageModel
from unbounded.lm.recurrent import RecurrentModel
from unbounded.lm.settings import NetworkConfig
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State

hold_torch()

_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "elman": nn.RNN,
}


class Encoder(nn.Module):
    """Reads word ids and returns the hidden state after each; row `size` is the `<unk>` input."""

    def __init__(self, size: int, config: NetworkConfig) -> None:
        super().__init__()
        self.size, self.kind = size, config.cell
        self.embedding = nn.Embedding(size + 1, config.units, sparse=True)
        self.cell = _CELLS[config.cell](config.units, config.units)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew from `generator`."""
        bound = self.cell.hidden_size**-0.5
        with torch.no_grad():
            self.embedding.weight.uniform_(-0.1, 0.1, generator=generator)
            for weight in self.cell.parameters():
                weight.uniform_(-bound, bound, generator=generator)

    def forward(
        self, vectors: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the cell over embedded words, (steps, streams, units); the state is a value."""
        if isinstance(self.cell, nn.LSTM):
            hidden, new = self.cell(vectors, (state[0], state[1]))
            return hidden, new
        hidden, last = self.cell(vectors, state[0])
        return hidden, (last,)

    def zero_state(self, streams: int) -> tuple[Tensor, ...]:
        """The state before anything was read."""
        device = self.embedding.weight.device
        zeros = torch.zeros(1, streams, self.cell.hidden_size, device=device)
        return (zeros, zeros.clone()) if isinstance(self.cell, nn.LSTM) else (zeros,)


def build_head(units: int, size: int, cutoffs: Sequence[int]) -> nn.AdaptiveLogSoftmaxWithLoss:
    """An adaptive softmax over `size` words, with those cut-offs that lie inside the vocabulary."""
    ends = NetworkConfig(units=units, cutoffs=tuple(cutoffs)).ends(size)[:-1]
    return nn.AdaptiveLogSoftmaxWithLoss(
        units, size, list(ends), div_value=4.0 if units >= 4 else 1.0
    )


def reset_head(head: nn.AdaptiveLogSoftmaxWithLoss, generator: torch.Generator) -> None:
    """Draw all weights anew from `generator`."""
    with torch.no_grad():
        for weight in head.parameters():
            weight.uniform_(
                -(weight.shape[1] ** -0.5), weight.shape[1] ** -0.5, generator=generator
            )


def word_log_probs(head: nn.AdaptiveLogSoftmaxWithLoss, hidden: Tensor, words: Tensor) -> Tensor:
    """The log-probability of one word a step; only the clusters that hold a word are computed."""
    cutoffs = head.cutoffs
    cluster, column = _place(cutoffs, words)
    found = pick(hidden @ head.head.weight.T, column)
    for i, tail in enumerate(head.tail):
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            found[rows] += pick(tail(hidden[rows]), words[rows] - cutoffs[i])
    return found


@torch.no_grad()
def learn_words(
    head: nn.AdaptiveLogSoftmaxWithLoss, hidden: Tensor, words: Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """The log-probability of one word a step, and the slope of minus `share` times it in `hidden`.

    Sets the gradients of the weights that were used. It is what autograd gives (tested), without
    the passes over memory that a graph of logarithms needs.
    """
    cutoffs = head.cutoffs
    cluster, column = _place(cutoffs, words)
    errors = hidden @ head.head.weight.T
    found = _errors(errors, column, share)
    head.head.weight.grad = errors.T @ hidden
    slope = errors @ head.head.weight
    for i, tail in enumerate(head.tail):
        narrow, wide = tail.parameters()
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            here = hidden[rows]
            inner = here @ narrow.T
            errors = inner @ wide.T
            found[rows] += _errors(errors, words[rows] - cutoffs[i], share)
            wide.grad = errors.T @ inner
            back = errors @ wide
            narrow.grad = back.T @ here
            slope.index_add_(0, rows, back @ narrow)
    return found, slope


def _place(cutoffs: Sequence[int], words: Tensor) -> tuple[Tensor, Tensor]:
    """Each word's cluster, 0 for a frequent one, and its column in the first softmax."""
    inner = torch.tensor(cutoffs[:-1], dtype=torch.int64).to(words.device)
    cluster = torch.bucketize(words, inner, right=True)
    return cluster, torch.where(cluster > 0, cutoffs[0] + cluster - 1, words)


def _errors(logits: Tensor, column: Tensor, share: float) -> Tensor:
    """One log-softmax a row; makes `logits` their own slopes."""
    steps = torch.arange(len(column))
    logits -= logits.amax(1, keepdim=True)
    picked = logits[steps, column]
    totals = logits.exp_().sum(1)
    logits.mul_((share / totals)[:, None])
    logits[steps, column] -= share
    return picked - totals.log()


def pick(logits: Tensor, column: Tensor) -> Tensor:
    """One log-softmax a row; leaves odds in `logits`, which spares two passes over memory."""
    picked = logits.gather(1, column[:, None])[:, 0]
    largest = logits.amax(1, keepdim=True)
    return picked - largest[:, 0] - logits.sub_(largest).exp_().sum(1).log_()


def dense_weights(encoder: Encoder, head: nn.AdaptiveLogSoftmaxWithLoss) -> dict[str, nn.Parameter]:
    """All weights but the embedding, by the names that a model folder has for them."""
    return {
        f"{part}.{name}": weight
        for part, module in (("cell", encoder.cell), ("head", head))
        for name, weight in module.named_parameters()
    }


def frozen(
    encoder: Encoder, head: nn.AdaptiveLogSoftmaxWithLoss, sentence_end: int
) -> RecurrentModel:
    """The network as it is now, without torch."""
    weights = {"embedding": encoder.embedding.weight, **dense_weights(encoder, head)}
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
        return self.head.log_prob(torch.from_numpy(hidden)).double().exp().numpy()
