"""The law for the whole model: however the words are cut, the scores are the same."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small import small_network
from tests.toy import ToyModel
from unbounded import _native
from unbounded.corpus import Vocabulary
from unbounded.datastore import Flat
from unbounded.errors import SettingError
from unbounded.experts import Cache, DynamicHead, Expert, NGram, Static, Uniform, Unigram
from unbounded.mixture import Fixed, Gated, Mixture, Online
from unbounded.model import OnlineModel

BASE = [f"w{n}" for n in range(11)]  # and the sentence end
SIZE = 18
MIXTURES: dict[str, Callable[[], Mixture]] = {
    "online": lambda: Online(6),
    "fixed": lambda: Fixed(np.full(6, 1 / 6)),
    "gated": lambda: Gated(6, groups=[5]),
}

# Words of the network and OOV words.
texts = st.lists(st.sampled_from([*BASE, *(f"new{n}" for n in range(6))]), min_size=1, max_size=25)


def build(mixture: Mixture) -> OnlineModel:
    toy = ToyModel(base_size=12, width=5)
    experts: dict[str, Expert] = {
        "static": Static(toy),
        "uniform": Uniform(SIZE),
        "unigram": Unigram(SIZE),
        "ngram": NGram(SIZE),
        "local": Cache(Flat(5, window=7), SIZE, k=3),
        "unbounded": Cache(Flat(5), SIZE, k=4),
    }
    return OnlineModel(toy, Vocabulary(BASE), experts, mixture)


@pytest.mark.parametrize("name", MIXTURES)
@given(words=texts, cuts=st.lists(st.integers(0, 25), max_size=4))
@settings(max_examples=40, deadline=None)
def test_reading_blocks_of_any_cut_equals_predicting_then_reading_one_word(
    name: str, words: list[str], cuts: list[int]
) -> None:
    slow = build(MIXTURES[name]())
    expected = []
    for word in words:
        said = slow.predict()
        # The word's id, as it will be: an OOV word gets the next one.
        number = int(slow.vocabulary.copy().encode([word])[0])
        expected.append(float(said.prob(np.array([number]))[0]))
        slow.read([word])
    fast = build(MIXTURES[name]())
    edges = [0, *sorted(min(cut, len(words)) for cut in cuts), len(words)]
    found = np.concatenate([fast.read(words[a:b]).prob for a, b in pairwise(edges)])
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(fast.mixture.weights, slow.mixture.weights, rtol=1e-4)
    assert fast.vocabulary.to_text() == slow.vocabulary.to_text()


@pytest.mark.parametrize("name", MIXTURES)
@given(words=texts)
@settings(max_examples=25, deadline=None)
def test_the_next_word_sums_to_one_over_the_full_vocabulary_at_every_step(
    name: str, words: list[str]
) -> None:
    model = build(MIXTURES[name]())
    for word in words:
        dense = model.predict().dense(SIZE)
        assert (dense > 0).all()
        np.testing.assert_allclose(dense.sum(), 1, rtol=1e-6)
        model.read([word])


@given(words=texts, others=texts, keep=st.integers(0, 25))
@settings(max_examples=25, deadline=None)
def test_no_score_knows_the_words_after_it(words: list[str], others: list[str], keep: int) -> None:
    kept = words[:keep]
    before = build(Online(6)).read(words).prob[: len(kept)]
    after = build(Online(6)).read([*kept, *others]).prob[: len(kept)]
    np.testing.assert_allclose(after, before, rtol=1e-5)


@given(words=texts)
@settings(max_examples=10, deadline=None)
def test_asking_teaches_nothing(words: list[str]) -> None:
    asked, quiet = build(Online(6)), build(Online(6))
    for word in words:
        asked.predict().dense(SIZE)
        assert asked.read([word]).prob.tolist() == quiet.read([word]).prob.tolist()


@pytest.mark.parametrize("name", MIXTURES)
@given(words=texts, more=texts)
@settings(max_examples=15, deadline=None)
def test_a_saved_state_goes_on_bit_for_bit(name: str, words: list[str], more: list[str]) -> None:
    went_on, restored = build(MIXTURES[name]()), build(MIXTURES[name]())
    went_on.read(words)
    restored.load([went_on.state()])
    assert restored.vocabulary.to_text() == went_on.vocabulary.to_text()
    np.testing.assert_array_equal(restored.read(more).prob, went_on.read(more).prob)


@given(words=texts, text=texts, cut=st.integers(0, 25))
@settings(max_examples=15, deadline=None)
def test_looking_ahead_teaches_nothing_and_any_cut_of_it_is_the_same(
    words: list[str], text: list[str], cut: int
) -> None:
    model = build(Gated(6, groups=[5]))
    model.read(words)
    before = {name: array.tobytes() for name, array in model.state().items()}
    whole, behind = model.peek(text)
    one, fork = model.peek(text[:cut])
    two, last = fork.peek(text[cut:])
    np.testing.assert_allclose(np.concatenate([one.prob, two.prob]), whole.prob, rtol=1e-4)
    np.testing.assert_allclose(last.hidden, behind.hidden, rtol=1e-5, atol=1e-6)
    assert {name: array.tobytes() for name, array in model.state().items()} == before


def test_a_new_word_is_expected_once_it_was_read() -> None:
    model = build(Online(6))
    reading = model.read(["new0", "w1", "w2"] * 8)
    surprise = -np.log(reading.prob[::3])
    assert surprise[-1] < surprise[0] - 1


def test_more_words_than_the_full_vocabulary_was_said_to_have_is_an_error() -> None:
    model = build(Online(6))
    with pytest.raises(SettingError, match="count the words"):
        model.read([f"new{n}" for n in range(10)])


def test_weights_and_experts_must_agree() -> None:
    toy = ToyModel(base_size=12, width=5)
    with pytest.raises(SettingError, match="one weight each"):
        OnlineModel(toy, Vocabulary(BASE), {"static": Static(toy)}, Online(2))


def test_who_learns_apart_says_the_same_as_one_after_the_other() -> None:
    lm = small_network()
    known = [f"w{n}" for n in range(lm.base_size - 1)]
    words, size = [known[n * n % len(known)] for n in range(600)], len(known) + 1

    def table(threads: int, *, overlap: bool) -> np.ndarray:
        experts: dict[str, Expert] = {
            "static": Static(lm),
            "dynamic_head": DynamicHead(lm),
            "unbounded": Cache(Flat(lm.width), size, k=4),
        }
        before = _native.threads()
        _native.set_threads(threads)
        try:
            online = OnlineModel(lm, Vocabulary(known), experts, Online(3))
            return online.read(words, overlap=overlap).table
        finally:
            _native.set_threads(before)

    expected = table(1, overlap=False)
    for threads, overlap in ((1, True), (2, False), (2, True)):
        np.testing.assert_array_equal(table(threads, overlap=overlap), expected)
