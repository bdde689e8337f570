"""The way back through a cell, held to autograd."""

import pytest
import torch

from unbounded.lm.dynamic_model import read_stretch
from unbounded.lm.pytorch import Encoder
from unbounded.lm.settings import CELLS, NetworkConfig


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_are_those_of_autograd(cell: str) -> None:
    generator = torch.Generator().manual_seed(1)
    encoder = Encoder(5, NetworkConfig(cell=cell, units=7))
    encoder.reset_parameters(generator)
    vectors, slope = (torch.randn(9, 7, generator=generator) for _ in range(2))
    state = tuple(torch.randn(1, 1, 7, generator=generator) for _ in encoder.zero_state(1))

    leaf = vectors.clone().requires_grad_()
    hidden, after = encoder(leaf[:, None], state)
    hidden[:, 0].backward(slope)
    expected = [weight.grad for weight in encoder.cell.parameters()]
    encoder.zero_grad()

    stretch = read_stretch(encoder, vectors, state)
    found = stretch.backward(slope)
    torch.testing.assert_close(stretch.hidden, hidden[:, 0].detach())
    torch.testing.assert_close(stretch.state, tuple(part.detach() for part in after))
    torch.testing.assert_close(found, leaf.grad)
    torch.testing.assert_close([weight.grad for weight in encoder.cell.parameters()], expected)
