"""The gate: it finds when to believe whom, and no signal can make it lose what it must not lose."""

import numpy as np
import pytest

from tests.contracts.test_mixture import KINDS, made_up
from unbounded.errors import SettingError
from unbounded.mixture import Gated, Online
from unbounded.mixture.mixture import RATES, SHARE
from unbounded.types import Context, Probs, Table

EXPERTS = 4


def nats(prob: Probs) -> float:
    return float(-np.log(prob).sum())


def signals(kind: str, table: Table) -> Context:
    """Signals of a kind, the worst of them made from the very words they should not know."""
    steps, random = len(table), np.random.default_rng(len(table))
    if kind == "noise":
        return random.normal(size=(steps, 3))
    if kind == "constant":
        return np.full((steps, 3), 7.0)
    if kind == "unknown":
        return np.full((steps, 3), np.nan)
    if kind == "huge":
        return random.normal(size=(steps, 3)) * 10.0 ** random.integers(-30, 30, (steps, 3))
    # Tells the truth for the first half, and the opposite after it.
    truth = np.log(table[:, :3] + 1e-3)
    return truth * np.where(np.arange(steps) < steps // 2, 1.0, -1.0)[:, None]


SIGNALS = ["noise", "constant", "unknown", "huge", "lies"]


@pytest.mark.parametrize("steps", [1, 30, 1_000, 100_000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("told", SIGNALS)
def test_it_keeps_its_bounds_whatever_comes_and_whatever_it_is_told(
    told: str, kind: str, steps: int
) -> None:
    table = made_up(kind, steps)
    gated = Gated(EXPERTS, groups=[3]).score(table, signals(told, table))
    assert np.isfinite(gated.weights).all()
    lost = nats(gated.prob) - nats(Online(EXPERTS).score(table).prob)
    chosen = np.log(2) / RATES[0] + np.log(len(RATES)) + 2.01 * SHARE * steps
    assert lost <= chosen
    with np.errstate(divide="ignore"):
        best = -np.log(table).sum(axis=0).min()
    single = np.log(EXPERTS) / RATES[0] + np.log(len(RATES)) + 2.01 * SHARE * steps
    assert nats(gated.prob) - best <= chosen + single
    if steps >= 100_000:
        # A tenth of a percent of perplexity is a thousandth of a nat a word.
        assert nats(gated.prob) - best <= 0.001 * steps


def told_by_a_side(steps: int, seed: int) -> tuple[Context, Table]:
    """A signal that tells which of two experts is right."""
    side = np.random.default_rng(seed).normal(size=(steps, 1))
    return side, np.where(side > 0, [0.5, 0.01], [0.01, 0.5])


def test_a_signal_that_tells_who_is_right_is_believed() -> None:
    side, table = told_by_a_side(20_000, 4)
    plain = nats(Online(2).score(table).prob)
    gated = nats(Gated(2, groups=[1]).score(table, side).prob)
    assert gated < 0.6 * plain  # measured 0.55, knowing all would be 0.51


def test_without_any_context_it_learns_that_experts_are_right_in_runs() -> None:
    run = np.random.default_rng(5).random(2_000) < 0.5
    table = np.where(np.repeat(run, 10)[:, None], [0.5, 0.01], [0.01, 0.5])
    plain = nats(Online(2).score(table).prob)
    gated = nats(Gated(2).score(table).prob)
    assert gated < 0.85 * plain  # measured 0.81


def test_a_signal_may_have_any_scale_and_any_zero() -> None:
    side, table = told_by_a_side(5_000, 6)
    one = nats(Gated(2, groups=[1]).score(table, side).prob)
    other = nats(Gated(2, groups=[1]).score(table, 1e-3 * side - 2.0).prob)
    assert abs(one - other) < 0.01 * one


def test_many_useless_signals_do_not_drown_a_useful_one_in_its_own_group() -> None:
    side, table = told_by_a_side(5_000, 7)
    context = np.concatenate([np.random.default_rng(8).normal(size=(5_000, 200)), side], axis=1)
    apart = nats(Gated(2, groups=[200, 1]).score(table, context).prob)
    together = nats(Gated(2, groups=[201]).score(table, context).prob)
    alone = nats(Gated(2, groups=[1]).score(table, side).prob)
    assert alone < apart < together


def test_a_context_of_another_width_is_refused() -> None:
    with pytest.raises(SettingError, match="2 signals for a gate of 3"):
        Gated(2, groups=[3]).score(np.full((4, 2), 0.5), np.zeros((4, 2)))
    with pytest.raises(SettingError, match="at least 1"):
        Gated(2, groups=[3, 0])
