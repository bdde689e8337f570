"""Dynamic evaluation: a private copy of the network goes on training on what it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from unbounded import _native
from unbounded.errors import check_settings
from unbounded.lm.pytorch import Encoder, TorchModel, dense_weights, learn_words
from unbounded.lm.recurrent import RecurrentModel
from unbounded.types import Hidden, Ids, Probs, State


@dataclass(frozen=True)
class DynamicConfig:
    """How the copy learns; chosen on the first 100,000 words of wiki, among what does not harm news
    (docs/log.md)."""

    segment: int = 64
    """Words between two steps, and how far a step looks back."""

    learning_rate: float = 0.05

    calm: float = 1e-2
    """Added to the root of Adagrad's sums, so that the first steps are small."""

    def __post_init__(self) -> None:
        check_settings(self, least_one="segment", above_zero="learning_rate calm")


@final
class DynamicModel:
    """A network that reads a stream and takes a gradient step after every segment of it.

    Krause et al. (2018): a segment is scored with the weights as they are, then learned from. They
    divide each step by the root of the mean squared gradient of the training text; that text is
    gone when a model is read with, so the squares of the stream's own gradients take its place
    (Adagrad, as in training), and as they only grow, the steps shrink by themselves.

    Segments are counted from the first word. A step is made of its whole segment at once, from the
    state before it, however the words came: the weights do not depend on how the stream was cut.
    """

    def __init__(self, lm: RecurrentModel, config: DynamicConfig = DynamicConfig()) -> None:
        self.config = config
        self.lm = TorchModel(lm)
        encoder, head = self.lm.encoder, self.lm.head
        self._vectors = encoder.embedding.weight
        self._vector_sums = torch.zeros_like(self._vectors)
        # Everything but the embedding, of which few rows change in a step.
        self._dense = dense_weights(encoder, head)
        for module in (encoder.cell, head):
            module.requires_grad_()
        self._adagrad = torch.optim.Adagrad(
            self._dense.values(), lr=config.learning_rate, eps=config.calm, fused=True
        )
        # The word before the segment and those of it that were read; the state before them all.
        self._words = np.array([lm.sentence_end])
        self._before: State = tuple(part.numpy() for part in encoder.zero_state(1))
        self._now: tuple[Hidden, State] | None = None

    @property
    def hidden(self) -> Hidden:
        """The state before the next word, one row."""
        return self._look()[0]

    def read(self, words: Ids) -> Probs:
        """Each word's probability just before it came; then learn, segment by segment."""
        probs = np.empty(len(words))
        start = 0
        while start < len(words):
            missing = self.config.segment + 1 - len(self._words)
            part = words[start : start + missing]
            if len(part) == self.config.segment:
                self._words = np.concatenate([self._words, part])
                probs[start : start + len(part)] = self._learn()
            else:
                hidden, state = self._look()
                after, state = self.lm.advance(state, part)
                states = np.concatenate([hidden, after])
                probs[start : start + len(part)] = self.lm.prob(states[:-1], part)
                self._words = np.concatenate([self._words, part])
                self._now = states[-1:], state
                if len(part) == missing:
                    self._learn()
            start += len(part)
        return probs

    def state(self) -> dict[str, np.ndarray]:
        """What has changed: all dense weights, the vectors of words that were read, the segment."""
        hidden, now = self._look()
        rows = self._vector_sums.any(1).nonzero()[:, 0]
        sums = {name: self._adagrad.state[weight]["sum"] for name, weight in self._dense.items()}
        arrays = {
            "rows": rows,
            "vectors": self._vectors[rows],
            "vector_sums": self._vector_sums[rows],
            **{f"weight.{name}": weight.detach() for name, weight in self._dense.items()},
            **{f"sum.{name}": values for name, values in sums.items()},
        }
        return {
            **{name: array.numpy().copy() for name, array in arrays.items()},
            "words": self._words,
            "hidden": hidden,
            **{f"before.{i}": part for i, part in enumerate(self._before)},
            **{f"now.{i}": part for i, part in enumerate(now)},
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state; a copy that has read before must have read the same."""
        with torch.no_grad():
            rows = torch.tensor(state["rows"])
            self._vectors[rows] = torch.tensor(state["vectors"])
            self._vector_sums[rows] = torch.tensor(state["vector_sums"])
            for name, weight in self._dense.items():
                weight.copy_(torch.tensor(state[f"weight.{name}"]))
                self._adagrad.state[weight]["sum"].copy_(torch.tensor(state[f"sum.{name}"]))
        self._words = state["words"].copy()
        parts = range(len(self._before))
        self._before = tuple(state[f"before.{i}"].copy() for i in parts)
        now = tuple(state[f"now.{i}"].copy() for i in parts)
        self._now = state["hidden"].copy(), now

    def _learn(self) -> Probs:
        """Score the segment that is complete, take a step, and begin the next."""
        ids = torch.from_numpy(np.minimum(self._words, self.lm.base_size))
        rows, place = torch.unique(ids[:-1], return_inverse=True)
        targets = ids[1:]
        before = tuple(torch.tensor(part) for part in self._before)
        stretch = read_stretch(self.lm.encoder, self._vectors[rows][place], before)
        known = targets < self.lm.base_size
        probs = np.zeros(len(targets))
        if known.any():
            # Over the whole segment: OOV words are words of it that say nothing.
            slope = torch.zeros_like(stretch.hidden)
            found, slope[known] = learn_words(
                self.lm.head, stretch.hidden[known], targets[known], 1 / len(targets)
            )
            probs[known.numpy()] = found.double().exp().numpy()
            self._step(rows, place, stretch.backward(slope))
        self._before = tuple(part.numpy() for part in stretch.state)
        self._words = self._words[-1:]
        self._now = None
        return probs

    def _look(self) -> tuple[Hidden, State]:
        """Where the stream stands; after a step it is read again only if somebody asks."""
        if self._now is None:
            self._now = self.lm.advance(self._before, self._words)
        return self._now

    @torch.no_grad()
    def _step(self, rows: Tensor, place: Tensor, slopes: Tensor) -> None:
        """Adagrad; of the embedding, only the rows that were read."""
        slope = torch.zeros(len(rows), slopes.shape[1]).index_add_(0, place, slopes)
        sums = self._vector_sums[rows].addcmul_(slope, slope)
        self._vector_sums[rows] = sums
        step = slope.div_(sums.sqrt_().add_(self.config.calm))
        self._vectors[rows] -= self.config.learning_rate * step
        self._adagrad.step()
        self._adagrad.zero_grad()


@dataclass(frozen=True)
class Stretch:
    """What reading a stretch of one stream gave, and the way back."""

    hidden: Tensor
    """The state after each word, (steps, units)."""
    state: tuple[Tensor, ...]
    """The state to go on from."""
    backward: Callable[[Tensor], Tensor]
    """From the slope of each state: sets the gradients of the cell, returns that of the words."""


def read_stretch(encoder: Encoder, vectors: Tensor, state: tuple[Tensor, ...]) -> Stretch:
    """Read embedded words, (steps, units), from a state, (1, 1, units) a part.

    Autograd takes one step of the stream at a time and keeps a graph of it. For an LSTM everything
    but the chain from state to state is a product over all steps at once, so the way back is
    written out, which is faster (docs/log.md); a test holds it to autograd, which other cells use.
    """
    if isinstance(encoder.cell, nn.LSTM):
        with torch.no_grad():
            hidden, after = encoder(vectors[:, None], state)
        back = partial(_lstm_backward, encoder.cell, vectors, state, hidden[:, 0])
        return Stretch(hidden[:, 0], after, back)
    vectors = vectors.requires_grad_()
    hidden, after = encoder(vectors[:, None], state)

    def backward(slope: Tensor) -> Tensor:
        torch.autograd.backward(hidden[:, 0], slope)
        assert vectors.grad is not None
        return vectors.grad

    return Stretch(hidden[:, 0].detach(), tuple(part.detach() for part in after), backward)


@torch.no_grad()
def _lstm_backward(
    cell: nn.LSTM, vectors: Tensor, before: tuple[Tensor, ...], hidden: Tensor, slope: Tensor
) -> Tensor:
    # In torch's order: words to gates, states to gates, and a bias of each.
    outer, inner, bias, second_bias = cell.parameters()
    earlier = torch.cat([before[0][0], hidden[:-1]])
    # The gates are known from the states, all steps at once: input, forget, cell, output.
    gates = torch.addmm(bias + second_bias, vectors, outer.T)
    gates.addmm_(earlier, inner.T)
    units = cell.hidden_size
    candidate = gates[:, 2 * units : 3 * units].tanh()
    gates.sigmoid_()
    gates[:, 2 * units : 3 * units] = candidate
    found = _native.lstm_backward(
        gates.numpy(), before[1][0, 0].numpy(), slope.contiguous().numpy(), inner.detach().numpy()
    )
    slopes = torch.from_numpy(found)
    inner.grad = slopes.T @ earlier
    outer.grad = slopes.T @ vectors
    bias.grad = second_bias.grad = slopes.sum(0)
    return slopes @ outer
