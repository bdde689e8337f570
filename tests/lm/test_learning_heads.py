"""Output layers that go on learning over frozen states, beside autograd."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.small import SMALL, small_transformer
from unbounded import _native
from unbounded.experts import Adapted, DynamicHead, Expert
from unbounded.lm import (
    AdaptedConfig,
    AdaptedHead,
    Adapter,
    AdapterConfig,
    DynamicHeadConfig,
    LearningLayer,
    SharedHead,
)

LM = SMALL["lstm"]
WORDS = np.array([3, 0, 11, 14, 8, 1, 1, 7, 5])


def adapted(every: int, rate: float, rank: int = 5, calm: float = 1e-2) -> Adapted:
    return Adapted(AdaptedHead(SharedHead(LM), AdaptedConfig(every, rank, rate, calm)))


def dynamic(segment: int, rate: float, adapter_rate: float = 0.2) -> DynamicHead:
    config = DynamicHeadConfig(segment, rate, adapter_rate)
    return DynamicHead(LM, LearningLayer(LM.output_layer, config))


def adapter(segment: int, rate: float) -> DynamicHead:
    lm = small_transformer()
    return DynamicHead(lm, Adapter(lm, AdapterConfig(segment, rate)))


HEADS: dict[str, Callable[[int, float], Expert]] = {"adapted": adapted, "dynamic_head": dynamic}
"""Words between two steps, and how far these go."""

every_head = pytest.mark.parametrize("name", HEADS)


def states_before(words: np.ndarray) -> np.ndarray:
    first, state = LM.start()
    return np.concatenate([first, LM.advance(state, words)[0]])[:-1]


@every_head
def test_before_its_first_step_it_is_the_frozen_network(name: str) -> None:
    head, hidden = HEADS[name](9, 0.3), states_before(WORDS)
    # The dynamic one to the last bit; it has no more to tell of itself than what it waits for.
    rounding = 1e-5 if name == "adapted" else 0.0
    assert name == "adapted" or set(head.state()) == {"hidden", "words"}
    np.testing.assert_allclose(head.predict(hidden).dense(12), LM.dense(hidden), rtol=rounding)
    frozen = LM.prob(hidden, WORDS)
    np.testing.assert_allclose(head.score(hidden, WORDS), frozen, rtol=rounding)
    assert (np.abs(head.predict(hidden).prob(WORDS) - frozen) > 1e-3).any()


@every_head
def test_it_learns_what_comes_often(name: str) -> None:
    words = np.tile([4, 9, 2, 9], 60)
    hidden = states_before(words)
    found, frozen = HEADS[name](4, 0.3).score(hidden, words), LM.prob(hidden, words)
    assert -np.log(found[-40:]).mean() < -np.log(frozen[-40:]).mean() - 0.8


@pytest.mark.parametrize("rash", [adapted(1, 500.0), dynamic(1, 50.0, 5.0)], ids=HEADS)
def test_no_step_is_so_large_that_a_probability_is_not_a_number(rash: Expert) -> None:
    words = np.random.default_rng(0).integers(0, 14, 500)
    hidden = states_before(words)
    assert np.isfinite(rash.score(hidden, words)).all()
    np.testing.assert_allclose(rash.predict(hidden).dense(12).sum(axis=1), 1, rtol=1e-5)


@every_head
def test_no_cut_and_no_thread_changes_a_bit_of_what_it_learns(isa: str, name: str) -> None:
    words, threads = np.tile(WORDS, 9), _native.threads()
    hidden, whole = states_before(words), HEADS[name](8, 0.3)
    probs, learned = whole.score(hidden, words), whole.state()
    try:
        for some, edges in ((1, [0, 1, 3, 3, 40, 81]), (3, [0, 81]), (3, [0, 7, 8, 81])):
            _native.set_threads(some)
            head = HEADS[name](8, 0.3)
            found = [head.score(hidden[a:b], words[a:b]) for a, b in pairwise(edges)]
            np.testing.assert_array_equal(np.concatenate(found), probs)
            for part, array in head.state().items():
                np.testing.assert_array_equal(array, learned[part])
    finally:
        _native.set_threads(threads)


def test_an_adapted_step_is_adagrads_on_the_slope_that_autograd_gives() -> None:
    head, hidden = adapted(9, 0.3), states_before(WORDS)
    head.score(hidden, WORDS)
    state = head.state()
    known = LM.base_size > WORDS
    rows = torch.from_numpy(hidden[known])
    signals = torch.cat([rows @ torch.tensor(state["axes"]), torch.ones(len(rows), 1)], 1)
    change = torch.zeros(state["change"].shape, requires_grad=True)
    logs = (rows @ torch.from_numpy(LM.first_weight).T + signals @ change.T).log_softmax(1)
    # All words from the seventh on are in the one cluster, whose column is the last.
    column = torch.from_numpy(np.minimum(WORDS[known], 7))
    torch.autograd.backward(-logs[torch.arange(len(column)), column].sum() / len(WORDS))
    assert change.grad is not None
    step = -0.3 * change.grad / (change.grad.abs() + 1e-2)
    np.testing.assert_allclose(state["change"], step.numpy(), rtol=1e-4, atol=1e-6)
    assert int(state["waiting"]) == 0


def surprise(layers: list[torch.Tensor], hidden: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Of known words, under an adapter and an adaptive softmax with one cluster from word 7 on."""
    adapter, head, narrow, wide = layers
    x = hidden + hidden @ adapter.T
    frequent = (x @ head.T).log_softmax(1)
    found = frequent.gather(1, words.clamp(max=7)[:, None])[:, 0]
    rare = ((x @ narrow.T) @ wide.T).log_softmax(1).gather(1, (words - 7).clamp(min=0)[:, None])
    return -torch.where(words < 7, found, found + rare[:, 0])


def test_a_dynamic_step_is_adagrads_with_one_sum_a_row_on_the_slope_that_autograd_gives() -> None:
    expert, hidden = dynamic(9, 0.3), states_before(WORDS)
    head, tails, _ = LM.output_layer
    layers = [torch.zeros(LM.width, LM.width), *(torch.tensor(w) for w in (head, *tails))]
    for layer in layers:
        layer.requires_grad_()
    expert.score(hidden, WORDS)
    known = LM.base_size > WORDS
    nats = surprise(layers, torch.from_numpy(hidden[known]), torch.from_numpy(WORDS[known]))
    torch.autograd.backward(nats.sum() / len(WORDS))
    found = expert.state()
    for i, layer in enumerate(layers):
        assert layer.grad is not None
        sums = layer.grad.square().mean(1)
        step = (0.3 if i else 0.2) * layer.grad / (sums.sqrt() + DynamicHeadConfig().calm)[:, None]
        np.testing.assert_allclose(found[f"sums.{i}"], sums, rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(
            found[f"weight.{i}"], (layer - step).detach(), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("weights", [2**20, 10], ids=["all directions", "two"])
def test_an_adapters_step_is_adagrads_on_the_slope_that_autograd_gives(
    weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbounded.lm.adapter.WEIGHTS", weights)
    lm, expert = small_transformer(), adapter(9, 0.3)
    words = WORDS % lm.base_size
    hidden = np.random.default_rng(1).normal(size=(9, lm.width)).astype(np.float32)
    frozen = expert.score(hidden, words)
    np.testing.assert_allclose(frozen, lm.prob(hidden, words), rtol=1e-6)
    found = expert.state()
    axes = torch.from_numpy(found.get("axes", np.eye(lm.width, dtype=np.float32)))
    assert axes.shape[1] == (2 if weights == 10 else lm.width)
    weight, states = torch.zeros(axes.shape, requires_grad=True), torch.from_numpy(hidden)
    logits = (states + states @ axes @ weight.T) @ torch.from_numpy(lm.first_weight).T
    torch.autograd.backward(torch.nn.functional.cross_entropy(logits, torch.from_numpy(words)))
    assert weight.grad is not None
    sums = weight.grad.square().mean(1)
    np.testing.assert_allclose(found["sums"], sums, rtol=1e-4, atol=1e-12)
    step = 0.3 / lm.width * weight.grad / (sums.sqrt() + AdapterConfig().calm)[:, None]
    np.testing.assert_allclose(found["adapter"], -step, rtol=1e-4, atol=1e-7)
    again = adapter(9, 0.3)
    again.load([found])
    after = again.predict(hidden)
    np.testing.assert_array_equal(after.prob(words), expert.predict(hidden).prob(words))
    np.testing.assert_allclose(after.dense(lm.base_size).sum(1), 1, rtol=1e-5)
    assert -np.log(after.prob(words)).mean() < -np.log(frozen).mean()


def test_what_is_no_piece_has_no_chance_and_teaches_nothing() -> None:
    lm, expert = small_transformer(), adapter(2, 0.3)
    hidden = np.ones((4, lm.width), np.float32)
    assert not expert.score(hidden, np.full(4, lm.base_size + 3)).any()
    assert set(expert.state()) == {"hidden", "words"}


def test_a_block_is_computed_once_for_the_same_values_and_anew_for_others() -> None:
    shared = SharedHead(LM)
    hidden = states_before(WORDS)
    prob = shared.prob(hidden, WORDS)
    assert shared.shortlist(hidden.copy(), WORDS.copy()).prob is prob
    np.testing.assert_array_equal(prob, LM.prob(hidden, WORDS))
    other = WORDS[::-1].copy()
    np.testing.assert_array_equal(shared.prob(hidden, other), LM.prob(hidden, other))


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
    found, waiting = _native.adapted_shares(
        odds, column, signals, change, sums, slope, 0, 100, 0.1, 0.1
    )
    moved = odds * np.exp((signals.astype(float) @ change).clip(-30, 30))
    probs, known = moved / moved.sum(1, keepdims=True), column >= 0
    at = np.arange(rows)
    np.testing.assert_allclose(found, np.where(known, probs[at, column], 0), rtol=1e-4)
    probs[at[known], column[known]] -= 1
    expected = kept + (signals * known[:, None]).T @ probs
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)
    assert waiting == rows


def test_arrays_of_another_network_are_refused() -> None:
    head = _native.DynamicHead(*LM.output_layer)
    with pytest.raises(ValueError, match="layer 0"):
        head.load(0, np.zeros((3, 5), np.float32), np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="no words"):
        head.learn(np.zeros((0, LM.width), np.float32), np.zeros(0, np.int64), 1, 0.1, 0.1, 0.1)
