"""An output layer that learns, beside autograd."""

import numpy as np
import pytest
import torch

from tests.small import SMALL
from unbounded.errors import SettingError
from unbounded.lm import AdaptedConfig, AdaptedHead, SharedHead

LM = SMALL["lstm"]
WORDS = np.array([3, 0, 11, 14, 8, 1, 1, 7, 5])
CONFIG = AdaptedConfig(every=9, rank=5, learning_rate=0.3, calm=1e-2)


def states_before(words: np.ndarray) -> np.ndarray:
    first, state = LM.start()
    return np.concatenate([first, LM.advance(state, words)[0]])[:-1]


def test_before_its_first_step_it_is_the_frozen_network() -> None:
    head = AdaptedHead(SharedHead(LM), CONFIG)
    hidden = states_before(WORDS)
    np.testing.assert_allclose(head.dense(hidden), LM.dense(hidden), rtol=1e-5)
    np.testing.assert_allclose(head.read(hidden, WORDS), LM.prob(hidden, WORDS), rtol=1e-5)
    assert (np.abs(head.prob(hidden, WORDS) - LM.prob(hidden, WORDS)) > 1e-3).any()


def test_its_step_is_adagrads_on_the_slope_that_autograd_gives() -> None:
    head = AdaptedHead(SharedHead(LM), CONFIG)
    hidden = states_before(WORDS)
    head.read(hidden, WORDS)
    state = head.state()
    words = WORDS.copy()
    known = words < LM.base_size
    rows = torch.from_numpy(hidden[known])
    signals = torch.cat([rows @ torch.tensor(state["axes"]), torch.ones(len(rows), 1)], 1)
    change = torch.zeros(state["change"].shape, requires_grad=True)
    logs = (rows @ LM.head.head.weight.T + signals @ change.T).log_softmax(1)
    # All words from the seventh on are in the one cluster, whose column is the last.
    column = torch.from_numpy(np.minimum(words[known], 7))
    torch.autograd.backward(-logs[torch.arange(len(column)), column].sum() / len(WORDS))
    assert change.grad is not None
    step = -0.3 * change.grad / (change.grad.abs() + 1e-2)
    np.testing.assert_allclose(state["change"], step.numpy(), rtol=1e-4, atol=1e-6)
    assert int(state["waiting"]) == 0


def test_it_learns_what_comes_often() -> None:
    head = AdaptedHead(SharedHead(LM), AdaptedConfig(every=4, rank=5, learning_rate=0.3))
    words = np.tile([4, 9, 2, 9], 60)
    hidden = states_before(words)
    found, frozen = head.read(hidden, words), LM.prob(hidden, words)
    assert -np.log(found[-40:]).mean() < -np.log(frozen[-40:]).mean() - 0.8


def test_no_change_is_so_large_that_a_probability_is_not_a_number() -> None:
    head = AdaptedHead(SharedHead(LM), AdaptedConfig(every=1, rank=5, learning_rate=500.0))
    words = np.tile(WORDS, 5)
    hidden = states_before(words)
    found = head.read(hidden, words)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(head.dense(hidden).sum(axis=1), 1, rtol=1e-5)


def test_a_block_is_computed_once_for_the_same_arrays_and_anew_for_others() -> None:
    shared = SharedHead(LM)
    hidden = states_before(WORDS)
    prob = shared.prob(hidden, WORDS)
    assert shared.block(hidden, WORDS).prob is prob
    np.testing.assert_array_equal(prob, LM.prob(hidden, WORDS))
    other = WORDS[::-1].copy()
    np.testing.assert_array_equal(shared.prob(hidden, other), LM.prob(hidden, other))


@pytest.mark.parametrize("wrong", [{"every": 0}, {"rank": 0}, {"calm": 0.0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        AdaptedConfig(**wrong)  # type: ignore[arg-type]
