import collections

import numpy as np
import pytest
from hypothesis import given, settings

from tests.evaluation.stream import Keeper, cuts, evaluate, some_words, texts
from unbounded.corpus import SENTENCE_END
from unbounded.evaluation.gains import Gains
from unbounded.evaluation.metrics import surprise


@given(words=texts, cuts=cuts)
@settings(max_examples=30, deadline=None)
def test_each_word_has_the_nats_it_saved_and_the_times_it_came(
    words: list[str], cuts: list[int]
) -> None:
    keeper = Keeper()
    gains = evaluate(words, ["static", "full"], cuts, watchers=[keeper]).gains
    assert gains is not None
    saved = surprise(keeper.probs("static")) - surprise(keeper.probs("full"))
    expected: collections.Counter[str] = collections.Counter()
    for word, nats in zip(words, saved.tolist(), strict=True):
        expected[word] += nats
    del expected[SENTENCE_END]

    found = gains.most(100) + gains.most(100, lost=True)
    assert {gain.word for gain in found} == {word for word in expected if expected[word]}
    for gain in found:
        assert gain.nats == pytest.approx(expected[gain.word])
        assert gain.times == words.count(gain.word)


def test_the_most_gained_come_first_and_the_most_lost_come_first() -> None:
    gains = evaluate(some_words(300)).gains
    assert gains is not None
    gained, lost = gains.most(100), gains.most(100, lost=True)
    assert [gain.nats for gain in gained] == sorted((gain.nats for gain in gained), reverse=True)
    assert [gain.nats for gain in lost] == sorted(gain.nats for gain in lost)
    assert all(gain.nats > 0 for gain in gained)
    assert all(gain.nats < 0 for gain in lost)


def test_as_many_as_asked_for_even_if_the_sentence_end_is_among_them() -> None:
    words = [SENTENCE_END, "new0", "new1", "new2"] * 30
    gains = evaluate(words, ["static", "unigram"]).gains
    assert gains is not None
    assert len(gains.most(3)) == 3


def test_one_row_has_nothing_to_gain_over() -> None:
    assert evaluate(some_words(20), ["static"]).gains is None


def test_a_word_impossible_for_both_gains_nothing() -> None:
    keeper = Keeper()
    evaluate(["new0", "known0"], ["static", "full"], watchers=[keeper])
    block = keeper.blocks[0]
    block.probs["static"] = np.array([0.0, 0.5])
    block.probs["full"] = np.array([0.0, 1.0])
    gains = Gains("static", "full")
    gains(block)
    assert [(gain.word, gain.times) for gain in gains.most(5)] == [("known0", 1)]
    assert gains.most(5, lost=True) == []
