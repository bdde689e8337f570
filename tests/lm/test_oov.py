"""OOV words get vectors from how they are spelled, and each stream has its own."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small import recurrent
from unbounded import _native
from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.experts import Expert, Static, Uniform
from unbounded.lm import NetworkConfig, RecurrentModel
from unbounded.lm.oov import (
    DOUBT,
    FEATURES,
    FREQUENT,
    RIDGE,
    OpenVocabularyModel,
    Speller,
    _spell,
)
from unbounded.mixture import Online
from unbounded.model import OnlineModel
from unbounded.types import Hidden

STEMS = [
    a + b for a in ("ba", "ko", "li", "mu", "re", "sto") for b in ("lt", "nd", "p", "rk", "ss")
]
WORDS = ["</s>", *(stem + ending for ending in ("ing", "ed", "s", "er") for stem in STEMS)]

words = st.text("abcdefgilnoprstuz0123456789.-éß中", min_size=1, max_size=12)


@cache
def network() -> RecurrentModel:
    """A network whose words that end alike are read alike."""
    lm = recurrent(len(WORDS), NetworkConfig(units=16, cutoffs=(20,)), seed=3)
    for row, word in enumerate(WORDS):
        lm.weights["embedding"][row, "gdsr".find(word[-1])] += 3
    return lm


@cache
def speller() -> Speller:
    return Speller(network(), Vocabulary(WORDS))


def vector(word: str) -> Hidden:
    found: Hidden = speller().vectors([word])
    return found


@given(st.lists(words, min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_vector_depends_on_the_spelling_and_on_nothing_else(some: list[str]) -> None:
    together = speller().vectors(some)
    np.testing.assert_array_equal(together, np.concatenate([vector(word) for word in some]))
    assert np.isfinite(together).all()
    assert speller().vectors([]).shape == (0, 16)


def test_a_stranger_is_read_as_what_is_spelled_alike() -> None:
    unknown = network().vectors(np.array([len(WORDS)]))[0]
    for oov, axis in (("zorbing", 0), ("zorbed", 1), ("zorbs", 2), ("zorber", 3)):
        apart = (vector(oov)[0] - unknown)[:4]
        assert apart.argmax() == axis
        assert apart[axis] > 0.3  # of 3 at most: some hundred words do not convince it


def test_it_is_the_ridge_regression_that_it_says() -> None:
    """Against the dual form, which is solved in the space of words instead of features."""
    features, ends = _spell(WORDS)
    size = len(WORDS)
    seen = np.zeros((size, FEATURES))
    for row, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
        np.add.at(seen[row], features[a:b], (b - a) ** -0.5)
    weights = size / (size + DOUBT * np.arange(1, size + 1))
    weights[: size // FREQUENT] = 0
    table = network().vectors(np.arange(size + 1)).astype(np.float64)
    root = np.sqrt(weights)[:, None]
    inner = (root * seen) @ (root * seen).T + RIDGE * np.eye(size)
    expected = seen @ (root * seen).T @ np.linalg.solve(inner, root * (table[:-1] - table[-1]))
    found = speller().vectors(WORDS) - table[-1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def hashed(kind: int, letters: list[int]) -> int:
    """A feature: letters hashed one by one."""
    key = kind
    for letter in letters:
        key = (key ^ letter) * 0xBF58476D1CE4E5B9 % 2**64
        key ^= key >> 29
    return key % FEATURES


def features_of(word: str) -> list[int]:
    """What is to be seen of a word: the definition."""
    codes = [*map(ord, word)]
    runs = [(n, [0, *codes, 0][at : at + n]) for n in (3, 4) for at in range(len(word) + 3 - n)]
    digit = [48 <= code <= 57 for code in codes]
    alike = [
        48 if n else 65 if 65 <= c <= 90 else 97 if 97 <= c <= 122 or c > 127 else c
        for c, n in zip(codes, digit, strict=True)
    ]
    shape = [kind for n, kind in enumerate(alike) if n == 0 or kind != alike[n - 1]]
    return [
        *(hashed(1, [0, *codes[:n]]) for n in range(1, min(4, len(word)) + 1)),
        *(hashed(2, [0, *codes[::-1][:n]]) for n in range(1, min(5, len(word)) + 1)),
        *(hashed(3, [n, *run]) for n, run in runs),
        hashed(4, [0, *shape]),
        hashed(5, [0, min(len(word), 12)]),
        hashed(6, [0, min(sum(digit), 12)]),
    ]


@given(st.lists(st.one_of(words, st.text(max_size=15)), max_size=8))
@settings(max_examples=50, deadline=None)
def test_features_are_those_of_the_definition(some: list[str]) -> None:
    try:
        features, ends = _spell(some)
    except UnicodeEncodeError:
        return  # half of a character, which no text has
    expected = [features_of(word) for word in some]
    assert features.tolist() == [feature for each in expected for feature in each]
    assert ends.tolist() == np.cumsum([len(each) for each in expected]).tolist()


def test_features_and_vectors_that_do_not_fit_are_refused() -> None:
    features, ends = _spell(["abc", "d"])
    weights, out = np.zeros((FEATURES, 4), np.float32), np.zeros((2, 4), np.float32)
    _native.oov_look_up(features, ends, weights, out)
    wrong_arrays: list[tuple[tuple[np.ndarray, ...], str]] = [
        ((features, ends, weights[:1], out), "feature .* of 1"),
        ((features[:-1].copy(), ends, weights, out), "ends must end"),
        ((features, ends[::-1].copy(), weights, out), "a word without features"),
        ((features, ends, weights, out[:1]), "not those of the words"),
        ((features, ends, weights.astype(np.float64), out), "weights is an array of another type"),
    ]
    for (a, b, c, d), complaint in wrong_arrays:
        with pytest.raises(ValueError, match=complaint):
            _native.oov_look_up(a, b, c, d)
    letters = np.zeros(5, np.uint32)
    for wrong in (np.array([2, 4]), np.array([2, 2]), np.array([-1, 6])):
        with pytest.raises(ValueError, match="not those of all letters"):
            _native.oov_features(letters, wrong, 10)
    with pytest.raises(ValueError, match="no features"):
        _native.oov_features(letters, np.array([2, 3]), 0)


def online(vocabulary: Vocabulary) -> OnlineModel:
    lm = OpenVocabularyModel(network(), speller(), vocabulary)
    experts: dict[str, Expert] = {"static": Static(lm), "uniform": Uniform(300)}
    return OnlineModel(lm, vocabulary, experts, Online(2))


@given(
    st.lists(st.one_of(words, st.sampled_from(WORDS)), min_size=1, max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
)
@settings(max_examples=50, deadline=None)
def test_however_a_stream_is_cut_its_strangers_are_read_the_same(
    text: list[str], cuts: list[int]
) -> None:
    whole = online(Vocabulary(WORDS)).read(text)
    model = online(Vocabulary(WORDS))
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [model.read(text[a:b]) for a, b in pairwise(edges)]
    np.testing.assert_allclose(
        np.concatenate([part.hidden for part in parts]), whole.hidden, rtol=1e-5, atol=1e-6
    )


def test_streams_that_share_a_network_keep_their_own_strangers() -> None:
    one, other, again = (online(Vocabulary(WORDS)) for _ in range(3))
    first = one.read(["zorbing", "</s>"])
    second = other.read(["frumped", "</s>"])
    third = again.read(["frumped", "</s>"])
    np.testing.assert_array_equal(first.ids, second.ids)  # the same number, another word
    assert not np.allclose(first.hidden[1], second.hidden[1])
    np.testing.assert_array_equal(second.hidden, third.hidden)
    np.testing.assert_array_equal(one.read(["zorbing", "x"]).ids, [first.ids[0], 122])


def test_many_strangers_outgrow_the_first_table() -> None:
    many = [f"stranger{n}" for n in range(150)]
    whole, single = online(Vocabulary(WORDS)), online(Vocabulary(WORDS))
    expected = whole.read(many).hidden
    found = np.concatenate([single.read([word]).hidden for word in many])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_threads_that_ask_at_once_spell_each_word_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled = speller().vectors

    def slowly(some: list[str]) -> Hidden:
        time.sleep(0.02)
        return spelled(some)

    vocabulary, slow = Vocabulary(WORDS), Speller(network(), Vocabulary(WORDS))
    monkeypatch.setattr(slow, "vectors", slowly)
    ids = vocabulary.encode([f"stranger{n}" for n in range(60)])
    asked = OpenVocabularyModel(network(), slow, vocabulary)
    alone = OpenVocabularyModel(network(), speller(), vocabulary)
    _, state = alone.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda some: asked.advance(state, some), (ids[:20], ids[:30], ids[:25], ids)))
    np.testing.assert_array_equal(asked.advance(state, ids)[0], alone.advance(state, ids)[0])


def test_a_word_that_is_only_asked_about_is_read_as_it_is_spelled_and_not_remembered() -> None:
    vocabulary = Vocabulary(WORDS)
    model = online(vocabulary)
    reading, _ = model.peek(["zorbing", "</s>", "zorbed"])
    assert len(vocabulary) == len(WORDS)
    unknown, _ = network().advance(network().start()[1], np.array([len(WORDS)]))
    assert not np.allclose(reading.hidden[1], unknown[0])
    read = model.read(["zorbing", "</s>", "zorbed"])
    np.testing.assert_array_equal(reading.hidden, read.hidden)


def test_a_foreign_vocabulary_is_refused() -> None:
    with pytest.raises(SettingError, match="give the one it was trained with"):
        OpenVocabularyModel(network(), speller(), Vocabulary(WORDS[:5]))
