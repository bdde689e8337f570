"""Every mixture: proper weights, no later row, bounded regret, whatever the experts say."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unbounded.errors import SettingError
from unbounded.mixture import Fixed, Gated, Mixture, Online, fit_weights
from unbounded.mixture.mixture import RATES, SHARE
from unbounded.types import Table

MIXTURES: dict[str, Callable[[int], Mixture]] = {
    "fixed": lambda m: Fixed(np.full(m, 1 / m)),
    "online": Online,
    "gated": lambda m: Gated(m, groups=[2, 1]),
}

# What is known before each row: one signal that means nothing, one constant, one not always known.
CONTEXT = np.random.default_rng(1).normal(size=(80, 3))
CONTEXT[:, 1] = 5.0
CONTEXT[::3, 2] = np.nan


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Rows of expert probabilities, zeros among them; the last expert is never zero."""
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 4)))
    table = draw(arrays(np.float64, shape, elements=st.sampled_from([0, 1e-9, 1e-4, 0.1, 0.5, 1])))
    table[:, -1] = 1e-6
    return table


@pytest.mark.parametrize("name", MIXTURES)
@given(table=tables(), cut=st.integers(0, 40))
@example(table=np.tile([1e-4, 1e-4, 1e-4, 1e-6], (2, 1)), cut=1)
@settings(max_examples=60, deadline=None)
def test_cutting_the_stream_changes_nothing(name: str, table: Table, cut: int) -> None:
    whole, parts = MIXTURES[name](table.shape[1]), MIXTURES[name](table.shape[1])
    context = CONTEXT[: len(table)]
    expected = whole.score(table, context)
    first = parts.score(table[:cut], context[:cut])
    second = parts.score(table[cut:], context[cut:])
    np.testing.assert_array_equal(np.concatenate([first.prob, second.prob]), expected.prob)
    np.testing.assert_array_equal(np.concatenate([first.weights, second.weights]), expected.weights)
    np.testing.assert_array_equal(parts.weights, whole.weights)


@pytest.mark.parametrize("name", MIXTURES)
@given(table=tables())
@settings(max_examples=60, deadline=None)
def test_weights_are_proper_and_mix_what_they_say(name: str, table: Table) -> None:
    mixture = MIXTURES[name](table.shape[1])
    before = mixture.weights_for(CONTEXT[0]).copy()
    scored = mixture.score(table, CONTEXT[: len(table)])
    assert (scored.weights > 0).all()
    np.testing.assert_allclose(scored.weights.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(scored.prob, (scored.weights * table).sum(axis=1), rtol=1e-9)
    assert (scored.prob > 0).all()
    np.testing.assert_allclose(scored.weights[0], before, rtol=1e-12)
    after = mixture.weights_for(CONTEXT[len(table)])
    again = mixture.score(table[:1], CONTEXT[len(table) : len(table) + 1])
    np.testing.assert_allclose(again.weights[0], after, rtol=1e-12)


@pytest.mark.parametrize("name", MIXTURES)
@given(table=tables())
@settings(max_examples=30, deadline=None)
def test_asking_for_weights_changes_nothing_and_no_context_is_needed(
    name: str, table: Table
) -> None:
    asked, quiet = MIXTURES[name](table.shape[1]), MIXTURES[name](table.shape[1])
    asked.score(table)
    quiet.score(table)
    for row in CONTEXT[:5]:
        np.testing.assert_allclose(asked.weights_for(row).sum(), 1, rtol=1e-9)
    np.testing.assert_allclose(asked.weights, asked.score(table).weights[0], rtol=1e-12)
    quiet.score(table)
    for part, array in asked.state().items():
        np.testing.assert_array_equal(array, quiet.state()[part])


@pytest.mark.parametrize("name", MIXTURES)
@given(table=tables(), other=tables())
@settings(max_examples=40, deadline=None)
def test_a_row_is_mixed_without_looking_at_it_or_at_later_rows(
    name: str, table: Table, other: Table
) -> None:
    changed = np.concatenate([table[:-1], np.full((2, table.shape[1]), 0.3)])
    first = MIXTURES[name](table.shape[1]).score(table, CONTEXT[: len(table)])
    second = MIXTURES[name](table.shape[1]).score(changed, CONTEXT[: len(changed)])
    np.testing.assert_array_equal(first.weights, second.weights[: len(table)])


@pytest.mark.parametrize("name", MIXTURES)
@given(table=tables(), more=tables())
@settings(max_examples=30, deadline=None)
def test_a_saved_state_goes_on_bit_for_bit(name: str, table: Table, more: Table) -> None:
    went_on, restored = MIXTURES[name](table.shape[1]), MIXTURES[name](table.shape[1])
    context = CONTEXT[: len(table)]
    went_on.score(table, context)
    restored.load([went_on.state()])
    np.testing.assert_array_equal(restored.weights, went_on.weights)
    np.testing.assert_array_equal(
        restored.score(table, context).prob, went_on.score(table, context).prob
    )


@pytest.mark.parametrize("name", MIXTURES)
def test_reading_nothing_is_allowed_and_teaches_nothing(name: str) -> None:
    mixture = MIXTURES[name](3)
    assert mixture.score(np.zeros((0, 3)), CONTEXT[:0]).weights.shape == (0, 3)
    np.testing.assert_allclose(mixture.weights, 1 / 3)


@pytest.mark.parametrize("name", ["online", "gated"])
def test_a_word_that_nobody_gives_a_chance_is_an_error_not_a_nan(name: str) -> None:
    with pytest.raises(SettingError, match="uniform"):
        MIXTURES[name](2).score(np.zeros((1, 2)), CONTEXT[:1])


def test_every_mixture_is_under_contract() -> None:
    tested = {type(make(2)) for make in MIXTURES.values()}
    written = {kind for kind in Mixture.__subclasses__() if kind.__module__.startswith("unbounded")}
    assert tested == written


def bound(steps: int, experts: int) -> float:
    """Nats that Soft-Bayes may lose against the best fixed weights, and what sharing adds."""
    single = np.log(experts) / RATES + experts * steps * np.log(1 / (1 - RATES))
    shared = steps * (2 * SHARE) + np.log(len(RATES)) - np.log(1 - SHARE)
    return float(single.min() + shared)


def made_up(kind: str, steps: int) -> Table:
    """Streams that are hard in different ways; the last expert is never zero."""
    random, place = np.random.default_rng(steps), np.arange(steps)
    table = random.uniform(0.0, 1.0, (steps, 4))
    if kind == "one is always right":
        table[:, 1] = 1.0
    elif kind == "taking turns":
        table[place, place % 3] = 1.0
    elif kind == "rarely needed":
        table[:, :3] *= (place % 500 != 499)[:, None]
    elif kind == "a switch":
        table[: steps // 2, 0] = table[steps // 2 :, 2] = 1.0
    elif kind == "many switches":
        table[place, place * 7 // steps % 3] = 1.0
    elif kind == "zeros":
        table[:, :3] *= random.random((steps, 3)) < 0.5
    elif kind == "the right one turns wrong":
        table[:, 0] = np.where(place < 0.9 * steps, 0.9, 0.0)
    elif kind == "heavy tails":
        table = 10.0 ** random.uniform(-9, 0, (steps, 4))
    elif kind == "against the last word":
        # Whoever was right is wrong next, which is what a gate on the past falls for first.
        table[:, :3] = 0.01
        table[place, random.permutation(steps) % 3] = 0.9
    table[:, 3] = 1e-5
    return table


KINDS = ["noise", "one is always right", "taking turns", "rarely needed", "a switch"]
KINDS += ["many switches", "zeros", "the right one turns wrong", "heavy tails"]
KINDS += ["against the last word"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [10, 1_000, 50_000])
def test_online_weights_keep_their_bound_against_the_best_in_hindsight(
    kind: str, steps: int
) -> None:
    table = made_up(kind, steps)
    hindsight = -np.log(table @ fit_weights(table)).sum()
    learned = -np.log(Online(4).score(table).prob).sum()
    assert learned - hindsight <= bound(steps, 4)


def test_online_weights_follow_a_switch_that_fixed_weights_cannot() -> None:
    table = made_up("a switch", 50_000)
    hindsight = -np.log(table @ fit_weights(table)).sum()
    learned = -np.log(Online(4).score(table).prob).sum()
    assert learned < 0.5 * hindsight  # measured 0.29


def test_weights_never_die_however_long_they_were_useless() -> None:
    table = np.tile([1.0, 1e-5], (100_000, 1))
    mixture = Online(2)
    mixture.score(table)
    rescue = mixture.score(np.array([[0.0, 1e-5]]))
    assert rescue.prob[0] > 1e-5 * 1e-6


@given(st.floats(1e-4, 0.5), st.floats(1e-12, 1e12))
@settings(max_examples=300, deadline=None)
def test_one_step_pays_for_its_regret_against_any_one_expert(rate: float, ratio: float) -> None:
    """The inequality that the bound against one expert adds up: ln x ≤ ln(1 - η + η x) / η."""
    assert np.log(ratio) <= np.log(1 - rate + rate * ratio) / rate + 1e-9


@pytest.mark.parametrize("steps", [1, 10, 1_000, 50_000])
def test_online_weights_lose_a_dozen_nats_at_most_to_the_best_single_expert(steps: int) -> None:
    for kind in KINDS:
        table = made_up(kind, steps)
        with np.errstate(divide="ignore"):
            best = -np.log(table).sum(axis=0).min()
        learned = -np.log(Online(4).score(table).prob).sum()
        allowed = np.log(4) / RATES[0] + np.log(len(RATES)) + 2.01 * SHARE * steps
        assert learned - best <= allowed


def test_em_finds_the_weights_that_made_the_data() -> None:
    random = np.random.default_rng(3)
    chosen = random.random(20_000) < 0.3
    table = np.where(chosen[:, None], [0.9, 0.1], [0.1, 0.9])
    weights = fit_weights(table)
    # The likeliest weights w solve 0.9 w + 0.1 (1 - w) = share of first-expert words.
    share = chosen.mean()
    np.testing.assert_allclose(weights[0], (share - 0.1) / 0.8, atol=1e-3)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0]])
def test_improper_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(SettingError, match="sum to 1"):
        Fixed(np.array(weights))


def test_with_a_prior_an_expert_that_was_never_needed_keeps_a_weight() -> None:
    table = np.tile([0.5, 1e-6], (1_000, 1))
    assert fit_weights(table)[1] < 1e-9
    assert fit_weights(table, prior=1.0)[1] > 0.5 / 1_000
