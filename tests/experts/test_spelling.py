"""A character model of OOV words: every string has a share of one, and what is read is learned."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experts.definitions import InPlaces
from unbounded import _native
from unbounded.corpus import SENTENCE_END, Vocabulary
from unbounded.corpus.tokenizer import LONGEST
from unbounded.errors import CorpusError
from unbounded.experts import Spelling, stepwise
from unbounded.experts.spelling import EVEN, CharacterModel, Written
from unbounded.types import Hidden, Ids, Probs

KNOWN = ("walk", "walked", "talk", "talked", "balk", "café", "1,234.5", "so-called")

Word = tuple[int, ...]
"""A word of a small alphabet, so that all words of a length can be written out."""


def nothing(words: Ids) -> Hidden:
    """Hidden states, which spelling does not look at."""
    return np.zeros((len(words), 1))


def flat(words: list[Word], shut: set[Word]) -> Written:
    """Words as the character model takes them; none may end at a prefix in `shut`."""
    symbols = np.array([symbol for word in words for symbol in word], np.uint8)
    starts = np.cumsum([0, *map(len, words)])
    closed = np.array([w[:n] in shut for w in words for n in range(len(w))], bool)
    return Written(symbols, starts, closed)


def total(longest: int, bits: int, learned: list[Word], known: list[Word]) -> float:
    """All words of up to so many symbols, and the mass of all that begins longer.

    A word that ends is as likely as its symbols times the chance to end there. The chance to go on
    is what shutting that end changes for a longer word.
    """
    shut = {(), *known}
    model = CharacterModel(bits)
    model.read(flat(learned, shut), np.ones(len(learned), bool), ask=False)

    def probs(words: list[Word], shut: set[Word]) -> Probs:
        found: Probs = np.exp(model.logprobs(flat(words, shut)))
        return found

    alphabet = range(1 << bits)
    words = [word for n in range(1, longest + 1) for word in product(alphabet, repeat=n)]
    begun = list(product(alphabet, repeat=longest + 1))
    longer = [(*word, 0) for word in begun]
    go_on = probs(longer, shut - {*begun}) / probs(longer, shut | {*begun})
    ended = probs([word for word in words if word not in shut], shut).sum()
    return float(ended + (probs(begun, shut) / (1 - go_on)).sum())


words_of_few_symbols = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple), max_size=12
)


@given(learned=words_of_few_symbols, known=words_of_few_symbols)
@settings(max_examples=40, deadline=None)
def test_all_words_up_to_a_length_and_the_mass_of_longer_ones_sum_to_one(
    learned: list[Word], known: list[Word]
) -> None:
    assert total(3, 2, learned, known) == pytest.approx(1, rel=1e-9)


def test_all_words_of_one_byte_and_the_mass_of_longer_ones_sum_to_one() -> None:
    learned = [tuple(word.encode()) for word in KNOWN]
    assert total(1, 8, learned, [(97,), (98,)]) == pytest.approx(1, rel=1e-9)


def test_a_word_that_may_end_where_it_is_known_would_be_caught() -> None:
    """Plant the waste: give known words what they would have as OOV words, on top of the rest."""
    assert total(2, 2, [(1, 2)], []) == pytest.approx(1)
    (logprob,) = CharacterModel(2).logprobs(flat([(1,)], {()}))
    assert total(2, 2, [], [(1,)]) + float(np.exp(logprob)) > 1.01


def test_the_networks_own_words_are_not_spelled_and_share_alike() -> None:
    vocabulary = Vocabulary(KNOWN)
    said = Spelling(vocabulary).predict(np.zeros((2, 1)))
    dense = said.dense(vocabulary.base_size)
    np.testing.assert_allclose(dense, EVEN / vocabulary.base_size)
    assert dense.shape == (2, len(KNOWN) + 1)


def test_a_number_without_a_word_has_nothing() -> None:
    vocabulary = Vocabulary(KNOWN)
    dense = Spelling(vocabulary).predict(np.zeros((1, 1))).dense(vocabulary.base_size + 3)
    assert dense[0, -3:].tolist() == [0, 0, 0]


def test_words_like_those_known_are_likelier_than_others() -> None:
    vocabulary = Vocabulary(f"{a}{b}" for a in ("walk", "talk", "balk") for b in ("", "ed", "ing"))
    ids = vocabulary.encode(["walker", "talks", "zqxjk", "0x7f"])
    probs = Spelling(vocabulary).predict(np.zeros((4, 1))).prob(ids)
    assert probs[:2].min() > 10 * probs[2:].max()


def test_an_oov_word_costs_less_the_second_time_and_so_does_its_kind() -> None:
    vocabulary = Vocabulary(KNOWN)
    words = vocabulary.encode(["zorble", "grimp", "zorble", "zorbles", "grimps"])
    probs = Spelling(vocabulary).score(nothing(words), words)
    assert probs[2] > 3 * probs[0]
    fresh = Spelling(vocabulary).predict(np.zeros((2, 1))).prob(words[3:])
    assert (probs[3:] > 3 * fresh).all()


def test_an_old_state_goes_on_as_the_edition_that_wrote_it() -> None:
    vocabulary = Vocabulary(KNOWN)
    words = vocabulary.encode(["zorble", "grimp", "zorbles"])
    old, new = Spelling(vocabulary, edition=1), Spelling(vocabulary)
    new.load([old.state()])
    np.testing.assert_array_equal(
        new.score(nothing(words), words), old.score(nothing(words), words)
    )


def test_an_oov_word_is_learned_once() -> None:
    vocabulary = Vocabulary(KNOWN)
    once = vocabulary.encode(["zorble"])
    often = np.repeat(once, 50)
    one, many = Spelling(vocabulary), Spelling(vocabulary)
    one.score(nothing(once), once)
    probs = many.score(nothing(often), often)
    assert len(set(probs[1:].tolist())) == 1
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, many.state()[name])


def test_what_was_asked_is_asked_anew_once_a_word_was_learned() -> None:
    vocabulary = Vocabulary(KNOWN)
    words = vocabulary.encode(["zorble", "grimp", "zorbles", "zorble"])
    asked, fresh = Spelling(vocabulary), Spelling(vocabulary)
    before = asked.ask(words)
    np.testing.assert_array_equal(asked.ask(words), before)
    for one in (asked, fresh):
        one.score(nothing(words[:1]), words[:1])
    np.testing.assert_array_equal(asked.ask(words), fresh.ask(words))
    assert (asked.ask(words)[[0, 2]] > before[[0, 2]]).all()
    other = Spelling(vocabulary)
    other.ask(words)
    other.load([asked.state()])
    np.testing.assert_array_equal(other.ask(words), asked.ask(words))


def test_known_words_teach_nothing() -> None:
    vocabulary = Vocabulary(KNOWN)
    words = vocabulary.encode([*KNOWN, SENTENCE_END])
    spelling = Spelling(vocabulary)
    before = spelling.state()
    spelling.score(nothing(words), words)
    for name, array in spelling.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_share_does_not_depend_on_what_else_has_a_number() -> None:
    """The vocabulary grows by a whole block before it is scored: that must not show."""

    def share(others: int) -> float:
        vocabulary = Vocabulary(KNOWN)
        spelling = Spelling(vocabulary)
        vocabulary.encode([f"noise{n}" for n in range(others)])
        ids = vocabulary.encode(["zorble"])
        return float(spelling.score(nothing(ids), ids)[0])

    assert share(0) == share(1_000)


odd_words = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=25
).filter(lambda word: word.split() == [word])


@given(words=st.lists(odd_words, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_word_of_any_script_has_a_share_and_a_block_equals_steps(words: list[str]) -> None:
    vocabulary = Vocabulary(KNOWN)
    ids = vocabulary.encode(words)
    probs = Spelling(vocabulary).score(nothing(ids), ids)
    assert (probs > 0).all()
    assert probs.sum() <= len(words)
    np.testing.assert_array_equal(stepwise(Spelling(vocabulary), nothing(ids), ids), probs)


@pytest.mark.parametrize(
    "word", ["🦜", "👩‍👩‍👧‍👦", "ß", "日本語", "\N{REPLACEMENT CHARACTER}" * 3, "x" * LONGEST]
)
def test_emoji_and_scripts_are_learned(word: str) -> None:
    vocabulary = Vocabulary(KNOWN)
    ids = vocabulary.encode([word, word])
    probs = Spelling(vocabulary).score(nothing(ids), ids)
    assert 0 < probs[0] < probs[1] < 1


@pytest.mark.parametrize("word", ["ab" * 50, "é" * 50, "🦜" * 25, "\x01" * 100, "\U0010ffff" * 25])
def test_no_word_costs_more_than_its_bytes_and_67_bits(word: str) -> None:
    vocabulary = Vocabulary(KNOWN)
    ids = vocabulary.encode([word, word])
    bits = -np.log2(Spelling(vocabulary).score(nothing(ids), ids) / (1 - EVEN))
    assert (bits <= 8 * len(word.encode()) + 67).all()
    assert bits[1] < bits[0]


def test_a_word_that_no_tokenizer_gives_is_refused_and_an_old_model_may_know_one() -> None:
    vocabulary = Vocabulary(["y" * 200, "z" * 10_000])
    spelling = Spelling(vocabulary)
    ids = vocabulary.encode(["y", "yy", "zz", "y" * 200])
    assert (spelling.score(nothing(ids), ids) > 0).all()
    before = spelling.state()
    ids = vocabulary.encode(["known1", "x" * (LONGEST + 1)])
    with pytest.raises(CorpusError, match="a word of 101 bytes; words have at most 100"):
        spelling.score(nothing(ids), ids)
    np.testing.assert_array_equal(spelling.state()["slots"], before["slots"])


# The native character model is the one of the definition, and refuses what it cannot read.

words_of = st.lists(st.text("ab1.-é", max_size=9).map(lambda w: tuple(w.encode())), max_size=20)


@given(words=words_of, shut=st.integers(0, 2**9 - 1), edition=st.sampled_from([1, 2]))
@settings(max_examples=80, deadline=None)
def test_it_says_what_the_definition_with_a_dictionary_of_places_says(
    words: list[Word], shut: int, edition: int
) -> None:
    plain, model = InPlaces(8, edition), CharacterModel(edition=edition)
    expected = []
    closed = [tuple(bool(shut >> min(n, 8) & 1) for n in range(len(word))) for word in words]
    for word, ends in zip(words, closed, strict=True):
        expected.append(plain.logprob(word, ends, learn=False))
        plain.logprob(word, ends, learn=True)
    written = Written(
        np.array([symbol for word in words for symbol in word], np.uint8),
        np.cumsum([0, *map(len, words)]),
        np.array([end for ends in closed for end in ends], bool),
    )
    found = model.read(written, np.ones(len(words), bool))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert model.counters.tolist() == [len(plain.places), len(words)]
    assert (model.slots != 0).sum() == model.counters[0]


def test_the_logarithm_of_a_long_word_is_a_sum_and_ends_at_no_least() -> None:
    symbols = np.random.default_rng(0).integers(0, 256, 10_000).astype(np.uint8)
    written = Written(symbols, np.array([0, len(symbols)]), np.ones(len(symbols), bool))
    # Nothing was learned: each bit is worth one, and so is the end.
    expected = -np.log(2) * (8 * len(symbols) + 1)
    assert CharacterModel().logprobs(written)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"symbols": np.zeros(3, np.int8)}, "symbols is an array of another type"),
        ({"shut": np.zeros(2, bool)}, "shut must be as long as symbols"),
        ({"starts": np.array([0, 2])}, "starts must begin with 0 and end"),
        ({"starts": np.array([0, 5, 3])}, "starts must not decrease"),
        ({"slots": np.zeros(1000, np.uint64)}, "slots must be a power of two"),
        ({"slots": np.ones(4, np.uint64), "counters": np.array([4, 0])}, "slots must be a power"),
        ({"counters": np.zeros(3, np.int64)}, "counters must be 2"),
        ({"bits": 9}, "9 bits a symbol"),
        ({"bits": 2}, "weights for each context and bit"),
        ({"new": np.zeros(2, bool)}, "new must be as many as words"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(
    change: dict[str, Any], complaint: str
) -> None:
    slots, counters, weights = CharacterModel().tables
    given: dict[str, Any] = {
        **{"symbols": np.zeros(3, np.uint8), "starts": np.array([0, 3]), "shut": np.zeros(3, bool)},
        **{"new": np.ones(1, bool), "slots": slots, "counters": counters, "weights": weights},
        **{"bits": 8},
    } | change
    words = given["symbols"], given["starts"], given["shut"]
    tables = (given["slots"], given["counters"], given["weights"])
    with pytest.raises(ValueError, match=complaint):
        _native.spelling_read(*words, given["new"], tables, given["bits"], ask=True)
