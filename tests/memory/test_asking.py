"""Asking a kept memory: what comes next, who says so and why; and asking teaches nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.memory.texts import CONFIG, open_toy, some_text
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


def test_a_passage_ends_with_its_file(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 zebra", "before")
        for part in ("a.txt", "a.txt#2"):
            memory.read("known2 known3 okapi", part)
        memory.read("known4 zebra", "after")
        texts = {p.document: p.text for p in memory.predict("known2 known3", n=1_000).sources}
        one = "known2 known3 okapi / known2 known3 okapi"
        assert texts["a.txt"] == texts["a.txt#2"] == one
        assert texts["after"].startswith("known4 zebra")
        assert "known2" not in texts["after"] + texts["before"]


def test_the_first_word_scores_what_was_predicted_and_oov_words_something(
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
        number, unmet = model.ids([word])
        alone, behind = model.peek([word])
        # Of the mixture nothing is known but by scoring; of the experts everything is, but for how
        # a word is spelled that has no id.
        said = [float(e.predict(model.hidden).prob(number)[0]) for e in model.experts.values()]
        spelled = list(model.experts).index("spelling")
        np.testing.assert_allclose(np.delete(alone.table[0], spelled), np.delete(said, spelled))
        assert alone.table[0, spelled] > 0
        assert bool(unmet) != (said[spelled] > 0)
        expected.append(alone.table[0].tolist())
        model = behind
    reading, _ = memory.online.peek(words)
    np.testing.assert_allclose(reading.table, expected, rtol=1e-6)


def test_stats_count_what_there_is(memory: Memory) -> None:
    found = memory.stats()
    assert found["entries"] == len(memory)
    assert (found["documents"], found["forgotten"]) == (2, 0)
    assert found["words"] == len(memory.online.vocabulary)
    assert found["bytes"] == sum(found["bytes_by_part"].values())
    assert found["words_by_day"]["2026-01-01"] + sum(
        words for day, words in found["words_by_day"].items() if day != "2026-01-01"
    ) == len(memory)
