import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.stream import (
    FULL,
    ROWS,
    Keeper,
    block_of,
    cut,
    cuts,
    evaluate,
    new_model,
    some_words,
    texts,
)
from unbounded.errors import CorpusError
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.metrics import FrequencyBuckets
from unbounded.evaluation.rows import make_rows


@given(words=texts, cuts=cuts)
@settings(max_examples=30, deadline=None)
def test_it_equals_predicting_then_reading_one_word_at_a_time(
    words: list[str], cuts: list[int]
) -> None:
    model, nats = new_model(["full"]), 0.0
    for word in words:
        known = model.vocabulary.lookup([word])
        number = np.where(known < 0, len(model.vocabulary), known)
        nats -= math.log(model.predict().prob(number)[0])
        model.read([word])

    row = evaluate(words, ["full"], cuts).rows[0]
    assert row.tally.nats == pytest.approx(nats, rel=1e-6)


@given(words=texts, cuts=cuts)
@settings(max_examples=40, deadline=None)
def test_perplexities_do_not_depend_on_the_cut(words: list[str], cuts: list[int]) -> None:
    whole, parts = evaluate(words), evaluate(words, cuts=cuts)
    for one, other in zip(whole.rows, parts.rows, strict=True):
        assert one.tally.perplexity == pytest.approx(other.tally.perplexity, rel=1e-6)
        assert one.tally.bits_per_character == pytest.approx(
            other.tally.bits_per_character, rel=1e-6, nan_ok=True
        )
        np.testing.assert_allclose(one.mean_weights, other.mean_weights, rtol=1e-5)
        for band, same in zip(one.bands, other.bands, strict=True):
            assert band.tokens == same.tokens
            assert band.nats == pytest.approx(same.nats, rel=1e-6)


@pytest.mark.parametrize("name", ROWS)
@given(words=texts)
@settings(max_examples=15, deadline=None)
def test_a_row_alone_equals_the_same_row_in_company(name: str, words: list[str]) -> None:
    alone = evaluate(words, [name], cuts=(9,)).rows[0]
    company = next(row for row in evaluate(words, cuts=(9,)).rows if row.name == name)
    assert alone.tally.nats == company.tally.nats
    np.testing.assert_array_equal(alone.mean_weights, company.mean_weights)


@given(words=texts, other=texts, keep=st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_no_score_depends_on_a_later_word(words: list[str], other: list[str], keep: int) -> None:
    before, after = Keeper(), Keeper()
    evaluate(words, watchers=[before])
    evaluate([*words[:keep], *other], watchers=[after])
    for name in ROWS:
        np.testing.assert_allclose(
            before.probs(name)[:keep], after.probs(name)[: min(keep, len(words))], rtol=1e-6
        )


@given(words=texts, cuts=cuts, every=st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_the_last_checkpoint_is_at_the_last_word(
    words: list[str], cuts: list[int], every: int
) -> None:
    evaluation = evaluate(words, ["static"], cuts, every)
    found = [checkpoint.tokens for checkpoint in evaluation.checkpoints]
    assert found[-1] == len(words)
    assert found == sorted(set(found))
    ends = np.cumsum([len(block.words) for block in cut(words, cuts)])
    due = {int(ends[ends >= goal][0]) for goal in range(every, len(words) + 1, every)}
    assert set(found) == due | {len(words)}


def test_a_checkpoint_says_what_came_since_the_last_one_and_so_far() -> None:
    keeper = Keeper()
    evaluation = evaluate(some_words(40), cuts=range(40), every=15, watchers=[keeper])
    start = 0
    for checkpoint in evaluation.checkpoints:
        for row in evaluation.rows:
            nats = -np.log(keeper.probs(row.name)[: checkpoint.tokens])
            point = checkpoint.points[row.name]
            assert point.perplexity == pytest.approx(math.exp(nats.mean()))
            assert point.recent_perplexity == pytest.approx(math.exp(nats[start:].mean()))
        start = checkpoint.tokens
    last = evaluation.checkpoints[-1]
    for row in evaluation.rows:
        assert last.points[row.name].weights == tuple(row.mixture.weights.tolist())
        assert last.points[row.name].perplexity == row.tally.perplexity


def test_an_empty_text_has_no_checkpoint() -> None:
    for blocks in ([], [block_of([])]):
        evaluation = Evaluation({}, FULL, make_rows(["static"]))
        with pytest.raises(CorpusError, match="no words"):
            evaluation.run(new_model(), blocks, every=5)
        assert evaluation.checkpoints == []


def test_a_rows_time_is_that_of_the_network_and_its_own_experts() -> None:
    keeper, words = Keeper(), some_words(60)
    evaluation = evaluate(words, cuts=(20, 40), watchers=[keeper])
    for row in evaluation.rows:
        least = sum(block.reading.seconds[name] for block in keeper.blocks for name in row.parts)
        assert least < row.seconds
    seconds = {row.name: row.seconds for row in evaluation.rows}
    assert seconds["static"] < seconds["full"]
    # Watchers see every word once and in order.
    assert [word for block in keeper.blocks for word in block.reading.words] == words
    assert all(block.row_experts == ROWS for block in keeper.blocks)


def test_a_banding_that_has_counted_before_goes_on_counting() -> None:
    buckets, keeper = FrequencyBuckets(12), Keeper()
    buckets.bands(np.array([12, 12]))
    evaluation, words = Evaluation({}, FULL, make_rows(["static"])), ["new0", "known0", "new1"]
    model, blocks = new_model(["static"]), [block_of(words)]
    evaluation.run(model, blocks, every=5, watchers=[keeper], buckets=buckets)
    assert keeper.blocks[0].bands.tolist() == [5, 0, 3]
