"""Asking a kept memory: what comes next, who says so and why; and asking teaches nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.memory.texts import CONFIG, open_toy, some_text, state_of, store_of
from unbounded.memory import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = open_toy(tmp_path / "m")
    memory.read(some_text(30), "noise", time=datetime(2026, 1, 1, tzinfo=UTC))
    memory.read("known1 known2\n\nknown3 zebra known4\n" * 5, "zoo", line=7)
    return memory


def test_probabilities_are_those_of_the_model_and_shares_add_up(memory: Memory) -> None:
    found = memory.predict(n=1_000)
    assert len(found.words) == len(memory.online.vocabulary)
    probs = memory.online.predict().dense(len(found.words))[0]
    for guess in found.words:
        (number,) = memory.online.vocabulary.lookup([guess.word])
        np.testing.assert_allclose(guess.prob, probs[number], rtol=1e-9)
        np.testing.assert_allclose(sum(guess.shares.values()), 1, rtol=1e-9)
    assert [guess.prob for guess in found.words] == sorted(
        (guess.prob for guess in found.words), reverse=True
    )
    np.testing.assert_allclose(sum(g.prob for g in found.words) + found.oov, 1, rtol=1e-9)
    np.testing.assert_allclose(sum(found.weights.values()), 1, rtol=1e-9)


def test_passages_are_all_that_caches_and_n_grams_go_by(memory: Memory) -> None:
    found = memory.predict("known3", n=1_000, sources=1_000)
    words = memory.online.vocabulary.decode(memory.online.experts["unbounded"].datastore.words)  # type: ignore[attr-defined]
    followed = {after for before, after in pairwise(words) if before == "known3"}
    assert "zebra" in followed
    for guess in found.words:
        # All that the caches add to a word comes from the passages named, and what the n-grams
        # do if it ever came after the last word.
        shares = [guess.shares[name] for name in ("cache_128", "cache_1024", "unbounded")]
        if guess.word in followed:
            shares.append(guess.shares["ngram"])
        total = sum(passage.weight for passage in guess.sources)
        np.testing.assert_allclose(total, guess.prob * sum(shares), rtol=1e-6, atol=1e-12)
        for passage in guess.sources:
            assert passage.word == guess.word
            assert guess.word == "</s>" or guess.word in passage.text.lower()
    weights = [passage.weight for passage in found.sources]
    assert weights == sorted(weights, reverse=True)


def test_what_only_n_grams_remember_has_passages_too(tmp_path: Path) -> None:
    """One neighbor is all that the caches ask for, and it is another; the n-grams know better."""
    with open_toy(tmp_path / "m", config=replace(CONFIG, k=1)) as memory:
        memory.read("known5 known6 okapi\n" * 3, "zoo")
        memory.read(some_text(40, 2), "noise")
        found = memory.predict("known5 known6", n=1_000).words
        (guess,) = [guess for guess in found if guess.word == "okapi"]
        cached = sum(guess.shares[name] for name in ("cache_128", "cache_1024", "unbounded"))
        assert cached < guess.shares["ngram"]
        assert {(p.document, p.line) for p in guess.sources} == {("zoo", 2), ("zoo", 3)}
        # Before the first line no sentence had ended.
        assert all("known5 known6 okapi" in passage.text for passage in guess.sources)
        assert memory.predict("known5 known6", sources=0).sources == ()


def test_a_passage_knows_its_document_line_and_time(memory: Memory) -> None:
    (guess,) = [g for g in memory.predict("known3", n=1_000).words if g.word == "zebra"]
    assert guess.sources
    for passage in guess.sources:
        assert passage.document == "zoo"
        assert passage.line in {9, 12, 15, 18, 21}
        assert "known3 zebra known4" in passage.text
        assert abs((datetime.now(UTC) - passage.time).total_seconds()) < 600
    others = {
        p.time.date().isoformat() for p in memory.predict(n=1_000).sources if p.document == "noise"
    }
    assert others <= {"2026-01-01"}


def test_asking_teaches_nothing(memory: Memory) -> None:
    known, end = state_of(memory), store_of(memory).end
    memory.predict("known1 OOV word")
    memory.score(some_text(60, 3, ["known1", "oov", "another"]))
    memory.complete("known1", 5)
    assert (state_of(memory), store_of(memory).end) == (known, end)


def test_the_first_word_scores_what_was_predicted_and_strangers_something(
    memory: Memory,
) -> None:
    heard = memory.score("known4 never\nseen known1")
    assert list(heard.words) == ["known4", "never", "</s>", "seen", "known1", "</s>"]
    number = memory.online.vocabulary.lookup(["known4"])
    np.testing.assert_allclose(heard.prob[0], memory.online.predict().prob(number)[0], rtol=1e-9)
    assert (heard.prob > 0).all()
    assert heard.prob[1] < heard.prob[0]


def test_scoring_ahead_equals_predicting_word_by_word(memory: Memory) -> None:
    words = ["known3", "zebra", "known4", "</s>", "known3", "never", "known1", "known2"]
    expected, model = [], memory.online
    for word in words:
        number = model.ids([word])
        # Of the mixture nothing is known but by scoring; of the experts everything is.
        expected.append(
            [float(e.predict(model.hidden).prob(number)[0]) for e in model.experts.values()]
        )
        _, model = model.peek([word])
    reading, _ = memory.online.peek(words)
    np.testing.assert_allclose(reading.table, expected, rtol=1e-6)


def test_the_same_seed_writes_the_same_and_another_something_else(memory: Memory) -> None:
    said = memory.complete("known1", 30, temperature=1.0, seed=4)
    assert memory.complete("known1", 30, temperature=1.0, seed=4) == said
    assert memory.complete("known1", 30, temperature=1.0, seed=5) != said


def test_export_has_every_word_that_is_left(memory: Memory, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    memory.forget(matching="zebra")
    assert memory.export(str(tmp_path / "words.parquet")) == len(memory)
    table = parquet.read_table(tmp_path / "words.parquet")
    left = [word for words in store_of(memory).replay() for word in words]
    assert table["word"].to_pylist() == left
    assert set(table["document"].to_pylist()) == {"noise", "zoo"}
    assert table["time"].to_pylist()[0] == datetime(2026, 1, 1, tzinfo=UTC)


def test_stats_count_what_there_is(memory: Memory) -> None:
    found = memory.stats()
    assert found["entries"] == len(memory)
    assert (found["documents"], found["forgotten"]) == (2, 0)
    assert found["words"] == len(memory.online.vocabulary)
    assert found["bytes"] == sum(found["bytes_by_part"].values())
    assert found["words_by_day"]["2026-01-01"] + sum(
        words for day, words in found["words_by_day"].items() if day != "2026-01-01"
    ) == len(memory)
