"""An output layer that learns, beside autograd."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.small import SMALL, assert_no_cut_changes_a_bit
from unbounded import _native
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
    logs = (rows @ torch.from_numpy(LM.first_weight).T + signals @ change.T).log_softmax(1)
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


def test_a_block_is_computed_once_for_the_same_values_and_anew_for_others() -> None:
    shared = SharedHead(LM)
    hidden = states_before(WORDS)
    prob = shared.prob(hidden, WORDS)
    assert shared.shortlist(hidden.copy(), WORDS.copy()).prob is prob
    np.testing.assert_array_equal(prob, LM.prob(hidden, WORDS))
    other = WORDS[::-1].copy()
    np.testing.assert_array_equal(shared.prob(hidden, other), LM.prob(hidden, other))


@pytest.mark.parametrize("isa", _native.isas())
def test_no_cut_and_no_thread_changes_a_bit_of_what_it_learns(isa: str) -> None:
    config, words = AdaptedConfig(every=8, rank=3, learning_rate=0.3), np.tile(WORDS, 9)

    def make() -> tuple[Callable[..., np.ndarray], Callable[[], dict[str, np.ndarray]]]:
        head = AdaptedHead(SharedHead(LM), config)
        return head.read, head.state

    assert_no_cut_changes_a_bit(isa, make, states_before(words), words)


@pytest.mark.parametrize("isa", _native.isas())
@pytest.mark.parametrize(("rows", "columns", "directions"), [(0, 5, 3), (1, 1, 1), (30, 150, 13)])
def test_moved_odds_and_slopes_are_those_of_their_definition(
    isa: str, rows: int, columns: int, directions: int
) -> None:
    random = np.random.default_rng(0)
    odds = random.random((rows, columns), np.float32)
    column = random.integers(-1, columns, rows)
    signals = random.normal(size=(rows, directions)).astype(np.float32)
    change, slope = random.normal(size=(2, directions, columns)).astype(np.float32)
    sums, kept = np.zeros_like(change), slope.copy()
    before = _native.isa()
    _native.set_isa(isa)
    found, waiting = _native.adapted_shares(
        odds, column, signals, change, sums, slope, 0, 100, 0.1, 0.1
    )
    _native.set_isa(before)
    moved = odds * np.exp((signals.astype(float) @ change).clip(-30, 30))
    probs, known = moved / moved.sum(1, keepdims=True), column >= 0
    at = np.arange(rows)
    np.testing.assert_allclose(found, np.where(known, probs[at, column], 0), rtol=1e-4)
    probs[at[known], column[known]] -= 1
    expected = kept + (signals * known[:, None]).T @ probs
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)
    assert waiting == rows


@pytest.mark.parametrize("wrong", [{"every": 0}, {"rank": 0}, {"calm": 0.0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        AdaptedConfig(**wrong)  # type: ignore[arg-type]
