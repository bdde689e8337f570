"""Backpropagation through a recurrent cell over one stream of words.

Autograd takes one step of the stream at a time and keeps a graph of it. For an LSTM everything but
the chain from state to state is a product over all steps at once, so it is written out here, which
is faster (docs/log.md); a test holds it to autograd, which the other cells use.
"""

from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
import torch
from torch import Tensor, nn

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
    slopes = torch.empty_like(gates)
    _chain(
        gates.numpy(),
        before[1][0, 0].numpy(),
        slope.contiguous().numpy(),
        inner.detach().numpy(),
        slopes.numpy(),
    )
    inner.grad = slopes.T @ earlier
    outer.grad = slopes.T @ vectors
    bias.grad = second_bias.grad = slopes.sum(0)
    return slopes @ outer


@numba.njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def _chain(gates, cell_before, slope, inner, slopes):
    """The slope of every gate before its squashing, from the last step to the first."""
    steps, units = slope.shape
    one = np.float32(1.0)
    cells = np.empty((steps + 1, units), np.float32)
    cells[0] = cell_before
    for t in range(steps):
        for j in range(units):
            kept = gates[t, units + j] * cells[t, j]
            cells[t + 1, j] = kept + gates[t, j] * gates[t, 2 * units + j]
    later = np.zeros(units, np.float32)
    later_cell = np.zeros(units, np.float32)
    for back in range(steps):
        t = steps - 1 - back
        for j in range(units):
            enter, keep = gates[t, j], gates[t, units + j]
            candidate, out = gates[t, 2 * units + j], gates[t, 3 * units + j]
            shown = np.tanh(cells[t + 1, j])
            here = slope[t, j] + later[j]
            cell = later_cell[j] + here * out * (one - shown * shown)
            slopes[t, j] = cell * candidate * enter * (one - enter)
            slopes[t, units + j] = cell * cells[t, j] * keep * (one - keep)
            slopes[t, 2 * units + j] = cell * enter * (one - candidate * candidate)
            slopes[t, 3 * units + j] = here * shown * out * (one - out)
            later_cell[j] = cell * keep
        later[:] = 0
        # Four rows at a time: a fourth of the loads and stores of the sum.
        for k in range(0, 4 * units, 4):
            a, b, c, d = slopes[t, k], slopes[t, k + 1], slopes[t, k + 2], slopes[t, k + 3]
            for j in range(units):
                later[j] += (a * inner[k, j] + b * inner[k + 1, j]) + (
                    c * inner[k + 2, j] + d * inner[k + 3, j]
                )
