"""Dynamic evaluation, beside a plain one written with autograd."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.small import SMALL, small_network
from unbounded.lm import DynamicConfig, DynamicModel, NetworkConfig, TorchModel
from unbounded.lm.dynamic_model import read_stretch
from unbounded.lm.pytorch import Encoder
from unbounded.lm.settings import CELLS

WORDS = np.array([3, 0, 11, 14, 8, 1, 1, 7, 5, 3, 0, 11, 2])
CONFIG = DynamicConfig(segment=4, learning_rate=0.1, calm=1e-3)


def read_plainly(cell: str, words: np.ndarray, config: DynamicConfig) -> np.ndarray:
    """Whole segments only: forward, score, backward, torch's own Adagrad over every weight."""
    lm = SMALL[cell]
    plain = TorchModel(lm)
    encoder, head = plain.encoder, plain.head
    # Dense, so that all of it is one optimizer's; a row without a slope does not move.
    encoder.embedding.sparse = False
    weights = [*encoder.parameters(), *head.parameters()]
    for weight in weights:
        weight.requires_grad_()
    adagrad = torch.optim.Adagrad(weights, lr=config.learning_rate, eps=config.calm)
    state, before, probs = encoder.zero_state(1), lm.sentence_end, []
    for start in range(0, len(words), config.segment):
        ids = torch.from_numpy(np.minimum(words[start : start + config.segment], lm.base_size))
        inputs = torch.cat([torch.tensor([before]), ids[:-1]])
        hidden, state = encoder(encoder.embedding(inputs)[:, None], state)
        state, before = tuple(part.detach() for part in state), int(ids[-1])
        known = ids < lm.base_size
        found = head(hidden[known, 0], ids[known]).output
        here = np.zeros(len(ids))
        here[known.numpy()] = found.detach().exp().numpy()
        probs.append(here)
        adagrad.zero_grad()
        (-found.sum() / config.segment).backward()
        adagrad.step()
    return np.concatenate(probs)


@pytest.mark.parametrize("cell", SMALL)
def test_it_is_what_autograd_and_adagrad_give(cell: str) -> None:
    words = np.tile(WORDS[:12], 4)
    found = DynamicModel(SMALL[cell], CONFIG).read(words)
    np.testing.assert_allclose(found, read_plainly(cell, words, CONFIG), rtol=1e-4)


def test_its_weights_are_the_same_to_the_bit_however_the_stream_is_cut() -> None:
    words = np.tile(WORDS, 3)
    whole, parts = (DynamicModel(SMALL["lstm"], CONFIG) for _ in range(2))
    whole.read(words)
    for a, b in pairwise([0, 1, 2, 9, 21, 22, len(words)]):
        parts.read(words[a:b])
    cut = parts.state()
    for name, array in whole.state().items():
        if name != "hidden" and not name.startswith("now."):
            np.testing.assert_array_equal(array, cut[name])


def test_it_learns_what_comes_again() -> None:
    model = DynamicModel(SMALL["lstm"], CONFIG)
    words = np.tile([4, 9, 2, 6], 30)
    nats = -np.log(model.read(words))
    assert nats[:20].mean() > 2
    assert nats[-20:].mean() < 1.2  # measured: 0.86; four words alike would be 1.39


def test_the_network_it_was_made_from_stays_frozen() -> None:
    DynamicModel(SMALL["lstm"], CONFIG).read(np.tile(WORDS, 3))
    fresh = small_network("lstm").weights
    assert fresh.keys() == SMALL["lstm"].weights.keys()
    for name, weight in SMALL["lstm"].weights.items():
        np.testing.assert_array_equal(weight, fresh[name])


def test_a_segment_of_strangers_changes_nothing_but_the_state() -> None:
    model = DynamicModel(SMALL["lstm"], CONFIG)
    before = model.state()
    assert model.read(np.array([12, 13, 14, 12])).tolist() == [0, 0, 0, 0]
    after = model.state()
    for name in before:
        if name.startswith("weight."):
            np.testing.assert_array_equal(before[name], after[name])
    assert (before["hidden"] != after["hidden"]).any()


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_through_a_cell_are_those_of_autograd(cell: str) -> None:
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
