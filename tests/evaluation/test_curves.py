"""Curves from the first hundred words on, the same however a text is cut, without a last scrap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.stream import evaluate, some_words
from unbounded.evaluation.evaluation import FIRST, Curve
from unbounded.evaluation.rows import Row, ScoredBlock
from unbounded.model import Reading
from unbounded.presets import PRESETS


def curve_of(nats: np.ndarray, cuts: tuple[int, ...] = ()) -> Curve:
    """Of words with such nats, the weight of the one expert that of the other's surprise."""
    row = Row("static", PRESETS["static"])
    curve = Curve([row])
    for part in np.split(nats, sorted(cut for cut in cuts if cut <= len(nats))):
        weights = np.column_stack([part / 10, 1 - part / 10])
        ids, hidden = np.zeros(len(part), np.int64), np.zeros((len(part), 1), np.float32)
        probs, names = np.exp(-part), ("static", "uniform")
        reading = Reading([""] * len(part), ids, hidden, probs, names, weights, weights, {})
        curve(ScoredBlock(reading, ids, {"static": probs}, {"static": weights}, {}))
    return curve


@given(st.integers(1, 900), st.lists(st.integers(0, 900), max_size=5))
@settings(max_examples=30, deadline=None)
def test_it_is_the_same_however_the_text_is_cut(length: int, cuts: list[int]) -> None:
    nats = np.random.default_rng(length).uniform(1, 9, length)
    whole, parts = curve_of(nats).points(), curve_of(nats, tuple(cuts)).points()
    assert [point.tokens for point in whole] == [point.tokens for point in parts]
    for one, other in zip(whole, parts, strict=True):
        mine, theirs = one.points["static"], other.points["static"]
        assert mine.recent_perplexity == pytest.approx(theirs.recent_perplexity)
        assert mine.perplexity == pytest.approx(math.exp(nats[: one.tokens].mean()))
        assert mine.weights == pytest.approx(theirs.weights)


def test_points_begin_at_a_hundred_words_and_are_at_equal_ratios() -> None:
    tokens = [point.tokens for point in curve_of(np.ones(5_000)).points()]
    assert tokens[0] == FIRST
    assert tokens[-1] == 5_000
    ratios = np.divide(tokens[1:-1], tokens[:-2])
    assert ratios == pytest.approx(np.full(len(ratios), 2**0.25), rel=0.01)
    assert [point.tokens for point in curve_of(np.ones(7)).points()] == [7]


def test_a_point_is_of_the_later_half_and_the_last_no_scrap() -> None:
    nats = np.repeat([5.0, 3.0], [400, 400])
    points = {point.tokens: point.points["static"] for point in curve_of(nats).points()}
    assert points[400].recent_perplexity == pytest.approx(math.exp(5))
    assert points[800].recent_perplexity == pytest.approx(math.exp(3))
    assert points[800].perplexity == pytest.approx(math.exp(4))
    assert points[800].weights == pytest.approx((0.3, 0.7))
    # A few words more, however surprising, are a small part of the last point.
    more = curve_of(np.append(nats, np.full(5, 12.0))).points()[-1]
    assert more.tokens == 805
    assert more.points["static"].recent_perplexity < 1.3 * math.exp(3)


def test_an_evaluation_has_one_for_each_row() -> None:
    evaluation = evaluate(some_words(300), cuts=range(0, 300, 7), every=10_000)
    assert [point.tokens for point in evaluation.curve][:2] == [100, 119]
    last = evaluation.curve[-1]
    assert last.tokens == 300
    for row in evaluation.rows:
        assert last.points[row.name].perplexity == pytest.approx(row.tally.perplexity)
        assert sum(last.points[row.name].weights) == pytest.approx(1)
