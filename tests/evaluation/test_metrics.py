import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.compressors import written
from tests.evaluation.stream import texts
from unbounded.corpus import SENTENCE_END, Tokenizer
from unbounded.evaluation.metrics import (
    BANDS,
    FIRST_NEW_BAND,
    FrequencyBuckets,
    Tally,
    surprise,
)

characters = Tokenizer().characters
# The tokenizer never makes a sentence end out of text.
written_words = st.text(min_size=1, max_size=5).filter(lambda word: SENTENCE_END not in word)
probs = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30).map(np.array)
ids = st.lists(st.integers(0, 30), max_size=60).map(lambda found: np.array(found, np.int64))


@given(sentences=st.lists(st.lists(written_words, min_size=1)))
def test_characters_are_those_of_the_text_written_out(sentences: list[list[str]]) -> None:
    text = "".join(" ".join(sentence) + "\n" for sentence in sentences)
    words = [word for sentence in sentences for word in [*sentence, SENTENCE_END]]
    assert characters(words) == len(text)
    assert written(words) == text


@given(words=texts)
def test_the_text_that_compressors_get_is_as_long_as_what_is_counted(words: list[str]) -> None:
    # A text does not begin with a sentence end, nor has it two together.
    whole = [w for w in words if w != SENTENCE_END]
    assert len(written(whole)) == characters(whole)


def test_a_word_that_was_cut_is_written_whole() -> None:
    text = f"it {'rain' * 60} {'雨' * 50} !"
    words = [*Tokenizer().words(text), SENTENCE_END]
    assert len(words) == 8
    assert written(words) == f"{text}\n"
    assert characters(words) == len(written(words))
    assert characters([]) == 0
    assert characters(["été", "雨"]) == len("été 雨 ")


@given(words=texts, at=st.integers(0, 40))
def test_characters_do_not_depend_on_the_cut(words: list[str], at: int) -> None:
    assert characters(words) == characters(words[:at]) + characters(words[at:])


@given(probs=probs)
def test_perplexity_is_one_over_the_geometric_mean(probs: np.ndarray) -> None:
    tally = Tally()
    tally.add(float(surprise(probs).sum()), len(probs), 3 * len(probs))
    mean = float(np.prod(probs ** (1 / len(probs))))
    assert tally.perplexity == pytest.approx(1 / mean)
    assert tally.bits_per_character == pytest.approx(-math.log2(mean) / 3)


def test_an_impossible_word_is_infinitely_surprising() -> None:
    assert surprise(np.array([1.0, 0.0])).tolist() == [0.0, math.inf]
    tally = Tally()
    assert math.isnan(tally.perplexity)
    assert math.isnan(tally.bits_per_character)
    # Beyond any float is infinite too, and no crash.
    for nats in (744.0, math.inf):
        tally.add(nats, 1, 1)
        assert tally.perplexity == math.inf


@given(words=ids, base=st.integers(1, 30), at=st.integers(0, 60))
def test_bands_count_how_often_a_stranger_has_come(words: np.ndarray, base: int, at: int) -> None:
    buckets = FrequencyBuckets(base)
    found = np.concatenate([buckets.bands(words[:at]), buckets.bands(words[at:])])
    for t, word in enumerate(words.tolist()):
        times = words[: t + 1].tolist().count(word)
        if word < base:
            assert found[t] == 0
        else:
            expected = np.searchsorted([1, 2, 4, 8], times)
            assert found[t] == FIRST_NEW_BAND + expected


def test_known_words_fall_into_bands_by_rank() -> None:
    bands = FrequencyBuckets(50_000).bands(np.array([0, 999, 1_000, 9_999, 10_000, 49_999, 50_000]))
    assert [BANDS[band] for band in bands] == [
        "known, rank 1 to 1,000",
        "known, rank 1 to 1,000",
        "known, rank 1,001 to 10,000",
        "known, rank 1,001 to 10,000",
        "known, rank over 10,000",
        "known, rank over 10,000",
        "new, 1st time",
    ]
