"""The gate: it finds when to believe whom, and no signal can make it lose what it must not lose."""

import numpy as np
import pytest

from unbounded.errors import SettingError
from unbounded.mixture import Gated, Online
from unbounded.mixture.mixture import RATES, SHARE
from unbounded.types import Context, Probs, Table

EXPERTS = 4


def nats(prob: Probs) -> float:
    return float(-np.log(prob).sum())


def stream(kind: str, steps: int, random: np.random.Generator) -> Table:
    """Streams that are hard in different ways; the last expert is never zero."""
    table = random.uniform(0.0, 1.0, (steps, EXPERTS))
    place = np.arange(steps)
    if kind == "best expert switches":
        table[place, place * 7 // steps % 3] = 1.0
    elif kind == "one is always right":
        table[:, 1] = 1.0
    elif kind == "zeros":
        table[:, :3] *= random.random((steps, 3)) < 0.5
    elif kind == "the right one turns wrong":
        table[:, 0] = np.where(place < 0.9 * steps, 0.9, 0.0)
    elif kind == "heavy tails":
        table = 10.0 ** random.uniform(-9, 0, (steps, EXPERTS))
    elif kind == "always against the last word":
        # Whoever was right is wrong next, which is what a gate on the past falls for first.
        table[:, :3] = 0.01
        table[place, random.permutation(steps) % 3] = 0.9
    table[:, 3] = 1e-5
    return table


def signals(kind: str, table: Table, random: np.random.Generator) -> Context:
    """Signals of a kind, the worst of them made from the very words they should not know."""
    steps = len(table)
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


STREAMS = [
    "noise",
    "best expert switches",
    "one is always right",
    "zeros",
    "the right one turns wrong",
    "heavy tails",
    "always against the last word",
]
SIGNALS = ["noise", "constant", "unknown", "huge", "lies"]


@pytest.mark.parametrize("steps", [1, 30, 1_000, 100_000])
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("told", SIGNALS)
def test_it_keeps_its_bounds_whatever_comes_and_whatever_it_is_told(
    told: str, kind: str, steps: int
) -> None:
    random = np.random.default_rng(steps)
    table = stream(kind, steps, random)
    gated = Gated(EXPERTS, groups=[3]).score(table, signals(told, table, random))
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


def test_a_signal_that_tells_who_is_right_is_believed() -> None:
    random = np.random.default_rng(4)
    side = random.normal(size=(20_000, 1))
    table = np.where(side > 0, [0.5, 0.01], [0.01, 0.5])
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
    random = np.random.default_rng(6)
    side = random.normal(size=(5_000, 1))
    table = np.where(side > 0, [0.5, 0.01], [0.01, 0.5])
    one = nats(Gated(2, groups=[1]).score(table, side).prob)
    other = nats(Gated(2, groups=[1]).score(table, 1e-3 * side - 2.0).prob)
    assert abs(one - other) < 0.01 * one


def test_many_useless_signals_do_not_drown_a_useful_one_in_its_own_group() -> None:
    random = np.random.default_rng(7)
    side = random.normal(size=(5_000, 1))
    table = np.where(side > 0, [0.5, 0.01], [0.01, 0.5])
    context = np.concatenate([random.normal(size=(5_000, 200)), side], axis=1)
    apart = nats(Gated(2, groups=[200, 1]).score(table, context).prob)
    together = nats(Gated(2, groups=[201]).score(table, context).prob)
    alone = nats(Gated(2, groups=[1]).score(table, side).prob)
    assert alone < apart < together


def test_a_context_of_another_width_is_refused() -> None:
    with pytest.raises(SettingError, match="2 signals for a gate of 3"):
        Gated(2, groups=[3]).score(np.full((4, 2), 0.5), np.zeros((4, 2)))
    with pytest.raises(SettingError, match="at least 1"):
        Gated(2, groups=[3, 0])
