"""Pieces put together: words are counted as the tokenizer counts them, gains are of words."""

import numpy as np

from tests.transformers_small import TEXT, pretrained
from unbounded.corpus import Line, Tokenizer, blocks, read_sentences
from unbounded.evaluation.evaluation import make_rows
from unbounded.evaluation.progressive import ScoredBlock, progressive
from unbounded.evaluation.report import text_table
from unbounded.evaluation.word_aggregator import WordAggregator, WordCount
from unbounded.jobs import EvaluationConfig, evaluate
from unbounded.presets import MemoryConfig, build_online

LINES = [Line("made", number, line) for number, line in enumerate(TEXT.splitlines() * 4, 1)]
WORDS = sum(len(Tokenizer().words(line.text)) + 1 for line in LINES)


def scored(size: int, watcher: object) -> None:
    model = pretrained()
    rows = make_rows(["static", "unbounded"], closed=True)
    online = build_online(model, None, ["static", "uniform", "unbounded"], MemoryConfig())
    stream = blocks(read_sentences(LINES, model.tokenizer), size)
    list(progressive(online, stream, rows, every=10**6, watchers=[watcher]))  # type: ignore[list-item]


def test_words_are_shown_whole_however_the_stream_is_cut() -> None:
    shown: dict[int, list[str]] = {}
    nats: dict[int, float] = {}
    for size in (1, 3, 64):
        words, total = shown.setdefault(size, []), [0.0]

        def watch(block: ScoredBlock, words: list[str] = words, total: list[float] = total) -> None:
            words += block.reading.words
            total[0] -= float(np.log(block.probs["unbounded"]).sum())
            assert len(block.reading.ids) == len(block.reading.words) == len(block.bands)

        scored(size, WordAggregator(pretrained().tokenizer, watch))
        nats[size] = total[0]
    assert shown[1] == shown[3] == shown[64]
    assert shown[1][:8] == ["the", "cat", "sat", "on", "the", "mat", "</s>", "the"]
    np.testing.assert_allclose([nats[1], nats[3]], nats[64], rtol=1e-4)


def test_words_are_counted_as_our_tokenizer_counts_them() -> None:
    for size in (1, 7, 64):
        count = WordCount(pretrained().tokenizer)
        scored(size, count)
        assert count.total == WORDS


def test_an_evaluation_says_perplexity_a_piece_and_a_word() -> None:
    model = pretrained()
    found = evaluate(model, LINES, EvaluationConfig(rows=("static", "full")))
    figures = found.to_json()
    assert figures["words"] == WORDS
    for row, scored_row in zip(figures["rows"], found.rows, strict=True):
        nats = np.log(row["perplexity"]) * figures["tokens"]
        np.testing.assert_allclose(np.log(row["perplexity_per_word"]), nats / WORDS)
        bits = nats / np.log(2) / len(TEXT * 4)
        np.testing.assert_allclose(scored_row.tally.bits_per_character, bits)
    assert figures["oov_rate"] == 0
    assert f"pieces of {WORDS:,} words" in text_table(found)
    assert found.gains is not None
    assert {gain.word for gain in found.gains.most(3)} <= set(TEXT.replace("'", " '").split())


def test_static_alone_is_the_networks_own_perplexity() -> None:
    model = pretrained()
    found = evaluate(model, LINES, EvaluationConfig(rows=("static",)))
    words = [word for s in read_sentences(LINES, model.tokenizer) for word in s.words]
    ids = model.vocabulary.lookup(words)
    first, state = model.lm.start()
    hidden = np.concatenate([first, model.lm.advance(state, ids)[0]])[:-1]
    expected = np.exp(-np.log(model.lm.prob(hidden, ids)).mean())
    np.testing.assert_allclose(found.rows[0].tally.perplexity, expected, rtol=1e-5)
