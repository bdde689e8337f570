"""An output layer that goes on training over frozen states, beside autograd."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.small import SMALL, assert_no_cut_changes_a_bit
from unbounded import _native
from unbounded.errors import SettingError
from unbounded.experts import DynamicHead, DynamicHeadConfig

LM = SMALL["lstm"]
WORDS = np.array([3, 0, 11, 14, 8, 1, 1, 7, 5])
CONFIG = DynamicHeadConfig(segment=9, rate=0.3, adapter_rate=0.2)


def states_before(words: np.ndarray) -> np.ndarray:
    first, state = LM.start()
    return np.concatenate([first, LM.advance(state, words)[0]])[:-1]


def surprise(layers: list[torch.Tensor], hidden: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Of known words, under an adapter and an adaptive softmax with one cluster from word 7 on."""
    adapter, head, narrow, wide = layers
    x = hidden + hidden @ adapter.T
    frequent = (x @ head.T).log_softmax(1)
    found = frequent.gather(1, words.clamp(max=7)[:, None])[:, 0]
    rare = ((x @ narrow.T) @ wide.T).log_softmax(1).gather(1, (words - 7).clamp(min=0)[:, None])
    return -torch.where(words < 7, found, found + rare[:, 0])


def test_before_its_first_step_it_is_the_frozen_network_to_the_last_bit() -> None:
    expert, hidden = DynamicHead(LM, CONFIG), states_before(WORDS)
    assert set(expert.state()) == {"hidden", "words"}
    np.testing.assert_array_equal(expert.dense(hidden), LM.dense(hidden))
    np.testing.assert_array_equal(expert.score(hidden, WORDS), LM.prob(hidden, WORDS))
    assert (np.abs(expert.prob(hidden, WORDS) - LM.prob(hidden, WORDS)) > 1e-3).any()


def test_its_step_is_adagrads_with_one_sum_a_row_on_the_slope_that_autograd_gives() -> None:
    expert, hidden = DynamicHead(LM, CONFIG), states_before(WORDS)
    head, tails, _ = LM.output_layer
    layers = [torch.zeros(LM.width, LM.width), *(torch.tensor(w) for w in (head, *tails))]
    for layer in layers:
        layer.requires_grad_()
    expert.score(hidden, WORDS)
    known = LM.base_size > WORDS
    nats = surprise(layers, torch.from_numpy(hidden[known]), torch.from_numpy(WORDS[known]))
    torch.autograd.backward(nats.sum() / len(WORDS))
    for i, layer in enumerate(layers):
        assert layer.grad is not None
        sums = layer.grad.square().mean(1)
        rate = CONFIG.rate if i else CONFIG.adapter_rate
        step = rate * layer.grad / (sums.sqrt() + CONFIG.calm)[:, None]
        found = expert.state()
        np.testing.assert_allclose(found[f"sums.{i}"], sums, rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(
            found[f"weight.{i}"], (layer - step).detach(), rtol=1e-4, atol=1e-5
        )


def test_it_learns_what_comes_often_and_stays_a_distribution_on_nonsense() -> None:
    config = DynamicHeadConfig(segment=4, rate=0.3)
    expert, words = DynamicHead(LM, config), np.tile([4, 9, 2, 9], 60)
    hidden = states_before(words)
    found, frozen = expert.score(hidden, words), LM.prob(hidden, words)
    assert -np.log(found[-40:]).mean() < -np.log(frozen[-40:]).mean() - 0.8
    rash = DynamicHead(LM, DynamicHeadConfig(segment=1, rate=50.0, adapter_rate=5.0))
    words = np.random.default_rng(0).integers(0, 14, 500)
    hidden = states_before(words)
    assert np.isfinite(rash.score(hidden, words)).all()
    np.testing.assert_allclose(rash.dense(hidden).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("isa", _native.isas())
def test_no_cut_and_no_thread_changes_a_bit_of_what_it_learns(isa: str) -> None:
    config, words = DynamicHeadConfig(segment=8, rate=0.3), np.tile(WORDS, 9)

    def make() -> tuple[Callable[..., np.ndarray], Callable[[], dict[str, np.ndarray]]]:
        head = DynamicHead(LM, config)
        return head.score, head.state

    assert_no_cut_changes_a_bit(isa, make, states_before(words), words)


@pytest.mark.parametrize("wrong", [{"segment": 0}, {"rate": 0.0}, {"calm": float("nan")}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        DynamicHeadConfig(**wrong)  # type: ignore[arg-type]


def test_arrays_of_another_network_are_refused() -> None:
    head = _native.DynamicHead(*LM.output_layer)
    with pytest.raises(ValueError, match="layer 0"):
        head.load(0, np.zeros((3, 5), np.float32), np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="no words"):
        head.learn(np.zeros((0, LM.width), np.float32), np.zeros(0, np.int64), 1, 0.1, 0.1, 0.1)
