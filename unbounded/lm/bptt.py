"""Backpropagation through a recurrent cell over one stream of words.

Autograd takes one step of the stream at a time and keeps a graph of it. For an LSTM everything but
the chain from state to state is a product over all steps at once, so it is written out here, which
is faster (docs/log.md); a test holds it to autograd, which the other cells use.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unbounded import _native
from unbounded.lm.encoder import Encoder


@dataclass(frozen=True)
class Stretch:
    """What reading a stretch of one stream gave, and the way back."""

    hidden: Tensor
    """The state after each word, (steps, units)."""
    state: tuple[Tensor, ...]
    """The state to go on from."""
    _encoder: Encoder
    _vectors: Tensor
    _before: tuple[Tensor, ...]
    _graph: Tensor | None

    def backward(self, slope: Tensor) -> Tensor:
        """From the slope of each state: set the gradients of the cell, return that of the words."""
        cell = self._encoder.cell
        if self._graph is not None:
            torch.autograd.backward(self._graph, slope)
            assert self._vectors.grad is not None
            return self._vectors.grad
        assert isinstance(cell, nn.LSTM)
        return _lstm_backward(cell, self._vectors, self._before, self.hidden, slope)


def read_stretch(encoder: Encoder, vectors: Tensor, state: tuple[Tensor, ...]) -> Stretch:
    """Read embedded words, (steps, units), from a state, (1, 1, units) a part."""
    if isinstance(encoder.cell, nn.LSTM):
        with torch.no_grad():
            hidden, after = encoder(vectors[:, None], state)
        return Stretch(hidden[:, 0], after, encoder, vectors, state, None)
    vectors = vectors.requires_grad_()
    hidden, after = encoder(vectors[:, None], state)
    kept = tuple(part.detach() for part in after)
    return Stretch(hidden[:, 0].detach(), kept, encoder, vectors, state, hidden[:, 0])


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
