"""Pieces put together: words are counted as the tokenizer counts them, gains are of words."""

import collections
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from tests.evaluation.stream import Keeper, cuts, evaluate, some_words, texts
from tests.transformers_small import TEXT, pretrained
from unbounded.corpus import SENTENCE_END, Line, Tokenizer, blocks, read_sentences
from unbounded.evaluation.evaluate import EvaluationConfig
from unbounded.evaluation.evaluate import evaluate as evaluate_text
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.metrics import surprise
from unbounded.evaluation.report import text_table
from unbounded.evaluation.rows import Gains, ScoredBlock, WordCount, make_rows
from unbounded.presets import MemoryConfig, build_online

LINES = [Line("made", number, line) for number, line in enumerate(TEXT.splitlines() * 4, 1)]
WORDS = sum(len(Tokenizer().words(line.text)) + 1 for line in LINES)


def scored(size: int, *watchers: Callable[[ScoredBlock], None]) -> None:
    model = pretrained()
    rows = make_rows(["static", "unbounded"], closed=True)
    online = build_online(model, None, ["static", "uniform", "unbounded"], MemoryConfig())
    stream = blocks(read_sentences(LINES, model.tokenizer), size)
    Evaluation({}, 0, rows).run(online, stream, every=10**6, watchers=watchers)


def test_gains_are_of_whole_words_however_the_stream_is_cut() -> None:
    found = {}
    for size in (1, 3, 64):
        gains, keeper = Gains("static", "unbounded", pretrained().tokenizer), Keeper()
        scored(size, gains, keeper)
        every = gains.most(99) + gains.most(99, lost=True)
        found[size] = {gain.word: (gain.times, gain.nats) for gain in every}
        assert found[size].keys() <= set(re.findall(r"'?\w+|[,;]", TEXT))
        # All that was gained is some word's but for the sentence ends', and the last one waits.
        saved = surprise(keeper.probs("static")) - surprise(keeper.probs("unbounded"))
        pieces = [piece for block in keeper.blocks for piece in block.reading.words]
        whole = saved[[piece != SENTENCE_END for piece in pieces]].sum()
        assert sum(gain.nats for gain in every) == pytest.approx(whole)
    for size in (1, 3):
        assert found[size].keys() == found[64].keys()
        for word, (times, nats) in found[size].items():
            assert times == found[64][word][0]
            assert nats == pytest.approx(found[64][word][1], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_words_are_counted_as_our_tokenizer_counts_them(size: int) -> None:
    count = WordCount(pretrained().tokenizer)
    scored(size, count)
    assert count.total == WORDS


def test_an_evaluation_says_perplexity_a_piece_and_a_word() -> None:
    model = pretrained()
    found = evaluate_text(model, LINES, EvaluationConfig(rows=("static", "full")))
    figures = found.to_json()
    assert figures["words"] == WORDS
    for row, scored_row in zip(figures["rows"], found.rows, strict=True):
        nats = np.log(row["perplexity"]) * figures["tokens"]
        np.testing.assert_allclose(np.log(row["perplexity_per_word"]), nats / WORDS)
        bits = nats / np.log(2) / len(TEXT * 4)
        np.testing.assert_allclose(scored_row.tally.bits_per_character, bits)
    assert figures["oov_rate"] == 0
    assert f"pieces of {WORDS:,} words" in text_table(found)


def test_static_alone_is_the_networks_own_perplexity() -> None:
    model = pretrained()
    found = evaluate_text(model, LINES, EvaluationConfig(rows=("static",)))
    words = [word for s in read_sentences(LINES, model.tokenizer) for word in s.words]
    ids = model.vocabulary.lookup(words)
    first, state = model.lm.start()
    hidden = np.concatenate([first, model.lm.advance(state, ids)[0]])[:-1]
    expected = np.exp(-np.log(model.lm.prob(hidden, ids)).mean())
    np.testing.assert_allclose(found.rows[0].tally.perplexity, expected, rtol=1e-5)


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
    gained, lost = gains.most(100), gains.most(100, lost=True)
    assert {gain.word for gain in gained + lost} == {w for w in expected if expected[w]}
    for gain in gained + lost:
        assert gain.nats == pytest.approx(expected[gain.word])
        assert gain.times == words.count(gain.word)
    # The most gained come first, and the most lost.
    assert [gain.nats for gain in gained] == sorted((gain.nats for gain in gained), reverse=True)
    assert [gain.nats for gain in lost] == sorted(gain.nats for gain in lost)
    assert all(gain.nats > 0 for gain in gained)
    assert all(gain.nats < 0 for gain in lost)


def test_as_many_as_asked_for_even_if_the_sentence_end_is_among_them() -> None:
    words = [SENTENCE_END, "new0", "new1", "new2"] * 30
    gains = evaluate(words, ["static", "unigram"]).gains
    assert gains is not None
    assert len(gains.most(3)) == 3
    # One row has nothing to gain over.
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
