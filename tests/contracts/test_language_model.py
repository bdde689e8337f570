"""Every network: cutting the stream changes nothing, probabilities sum to one, state is a value."""

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small import recurrent
from tests.toy import ToyModel
from tests.transformers_small import FAMILIES, network
from unbounded.corpus import Vocabulary
from unbounded.lm import (
    LanguageModel,
    NetworkConfig,
    RecurrentModel,
    SharedHead,
    TransformerConfig,
    TransformerModel,
)
from unbounded.lm.recurrent import OpenVocabularyModel, Speller
from unbounded.types import Ids

SIZE = 40


def network_of(cell: str, cutoffs: tuple[int, ...] = (5, 20)) -> RecurrentModel:
    return recurrent(SIZE, NetworkConfig(cell=cell, units=16, cutoffs=cutoffs), seed=7)


def spelled() -> OpenVocabularyModel:
    lm = network_of("lstm")
    vocabulary = Vocabulary(["</s>", *(f"word{n}" for n in range(SIZE - 1))])
    speller = Speller(lm, vocabulary)
    vocabulary.encode([f"stranger{n}" for n in range(1_000)])
    return OpenVocabularyModel(lm, speller, vocabulary)


SPELLED = cache(spelled)


@cache
def transformer(family: str, key: str = "output") -> TransformerModel:
    """With a context that is full after a dozen pieces, so that every stream turns it."""
    config = TransformerConfig(context=12, keep=3, key=key)
    return TransformerModel(network(family, SIZE), 0, config)


MODELS: dict[str, Callable[[], LanguageModel]] = {
    "toy": lambda: ToyModel(SIZE, 5),
    "lstm": lambda: network_of("lstm"),
    "lstm that keeps its last block": lambda: SharedHead(network_of("lstm")),
    "gru": lambda: network_of("gru"),
    "elman": lambda: network_of("elman"),
    "lstm, small vocabulary": lambda: network_of("lstm", cutoffs=(2_000, 10_000)),
    "spelled": SPELLED,
    **{family: partial(transformer, family) for family in FAMILIES},
    "gpt2, keys of the feed-forward": lambda: transformer("gpt2", "feedforward"),
}

# OOV words from SIZE on.
streams = st.lists(st.integers(0, SIZE + 5), min_size=1, max_size=30).map(np.array)


@pytest.mark.parametrize("name", MODELS)
@given(words=streams, cuts=st.lists(st.integers(0, 30), max_size=5))
@settings(max_examples=40, deadline=None)
def test_cutting_the_stream_anywhere_changes_nothing(
    name: str, words: Ids, cuts: list[int]
) -> None:
    model = MODELS[name]()
    _, begin = model.start()
    whole, whole_end = model.advance(begin, words)
    parts, state = [], begin
    edges = [0, *sorted(min(cut, len(words)) for cut in cuts), len(words)]
    for a, b in pairwise(edges):
        hidden, state = model.advance(state, words[a:b])
        parts.append(hidden)
    # Attention adds up in another order where a block is another; ours does not.
    off = 10 if model.closed else 1
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=off * 1e-5, atol=off * 1e-6)
    for part, expected in zip(state, whole_end, strict=True):
        np.testing.assert_allclose(part, expected, rtol=off * 1e-5, atol=off * 1e-6)


@pytest.mark.parametrize("name", MODELS)
@given(words=streams)
@settings(max_examples=20, deadline=None)
def test_probabilities_sum_to_one_over_the_base_vocabulary(name: str, words: Ids) -> None:
    model = MODELS[name]()
    first, state = model.start()
    hidden = np.concatenate([first, model.advance(state, words)[0]])[:-1]
    dense = model.dense(hidden)
    assert dense.shape == (len(words), model.base_size)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-5)
    known = words < model.base_size
    picked = np.where(known, dense[np.arange(len(words)), np.where(known, words, 0)], 0)
    np.testing.assert_allclose(model.prob(hidden, words), picked, rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
@given(words=streams)
@settings(max_examples=10, deadline=None)
def test_a_state_is_a_value_that_nothing_changes(name: str, words: Ids) -> None:
    model = MODELS[name]()
    _, state = model.start()
    kept = [part.copy() for part in state]
    first, _ = model.advance(state, words)
    for part, before in zip(state, kept, strict=True):
        np.testing.assert_array_equal(part, before)
    again, _ = model.advance(state, words)
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("name", MODELS)
def test_all_strangers_are_read_alike_unless_spelled_and_never_predicted(name: str) -> None:
    model = MODELS[name]()
    hidden, state = model.start()
    one, _ = model.advance(state, np.array([SIZE]))
    other, _ = model.advance(state, np.array([SIZE + 900]))
    assert np.array_equal(one, other) == (name != "spelled")
    assert model.prob(hidden, np.array([SIZE + 900])).tolist() == [0.0]


@pytest.mark.parametrize("name", MODELS)
def test_no_words_are_no_steps(name: str) -> None:
    model = MODELS[name]()
    _, state = model.start()
    hidden, after = model.advance(state, np.empty(0, np.int64))
    assert hidden.shape == (0, model.width)
    for part, before in zip(after, state, strict=True):
        np.testing.assert_array_equal(part, before)
