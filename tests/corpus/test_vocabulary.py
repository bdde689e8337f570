from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbounded.corpus import SENTENCE_END, Vocabulary
from unbounded.errors import CorpusError

WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=4)
STREAMS = st.lists(WORDS | st.just(SENTENCE_END))


@given(STREAMS, STREAMS)
def test_ids_are_dense_and_in_order_of_first_sight(base: list[str], read: list[str]) -> None:
    vocabulary = Vocabulary(base)
    ids = vocabulary.encode(read)
    order = list(dict.fromkeys([*base, SENTENCE_END, *read]))
    assert vocabulary.decode(np.arange(len(vocabulary))) == order
    assert vocabulary.base_size == len({*base, SENTENCE_END})
    assert ids.tolist() == [order.index(word) for word in read]


@given(STREAMS, st.integers(0, 10))
def test_reading_in_parts_gives_the_same_ids_as_reading_at_once(read: list[str], cut: int) -> None:
    once, parts = Vocabulary(), Vocabulary()
    ids = np.concatenate([parts.encode(read[:cut]), parts.encode(read[cut:])])
    assert once.encode(read).tolist() == ids.tolist()


@given(STREAMS, STREAMS)
def test_a_lookup_teaches_nothing(base: list[str], asked: list[str]) -> None:
    vocabulary = Vocabulary(base)
    before = vocabulary.to_text()
    ids = vocabulary.lookup(asked)
    assert vocabulary.to_text() == before
    assert [i >= 0 for i in ids.tolist()] == [word in vocabulary for word in asked]
    known = [word for word in asked if word in vocabulary]
    assert vocabulary.decode(ids[ids >= 0]) == known


@given(STREAMS, STREAMS)
def test_text_and_back_is_the_same_vocabulary(base: list[str], read: list[str]) -> None:
    vocabulary = Vocabulary(base)
    vocabulary.encode(read)
    again = Vocabulary.from_text(vocabulary.to_text())
    assert again.to_text() == vocabulary.to_text()
    assert again.base_size == len(vocabulary)


def test_counts_are_sorted_by_frequency_and_ties_keep_their_order() -> None:
    counts = Counter(["b", "a", "c", "c", "</s>", "b", "c"])
    assert Vocabulary.from_counts(counts).to_text().split() == ["c", "b", "a", "</s>"]


def test_the_sentence_end_is_a_base_word_even_if_it_was_not_counted() -> None:
    vocabulary = Vocabulary.from_counts({"a": 1})
    assert vocabulary.lookup([SENTENCE_END]).tolist() == [1]
    assert vocabulary.base_size == 2


def test_a_copy_grows_on_its_own() -> None:
    vocabulary = Vocabulary(["a"])
    vocabulary.encode(["b"])
    copy = vocabulary.copy()
    copy.encode(["c"])
    vocabulary.encode(["d"])
    assert copy.to_text().split() == ["a", "</s>", "b", "c"]
    assert vocabulary.to_text().split() == ["a", "</s>", "b", "d"]
    assert copy.base_size == vocabulary.base_size


@pytest.mark.parametrize("word", ["", " ", "a b", "a\n", "\u2028", "a\xa0", "\ud800"])
def test_what_one_line_cannot_hold_is_no_word(word: str) -> None:
    vocabulary = Vocabulary()
    with pytest.raises(CorpusError, match="cannot be a word"):
        vocabulary.encode(["a", word])
    assert vocabulary.to_text() == "</s>\na\n"
    assert vocabulary.lookup([word]).tolist() == [-1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no '</s>'"),
        ("a\n", "no '</s>'"),
        ("a\n</s>\na\n", "'a' twice"),
        ("a\n\n</s>\n", "'' cannot be a word"),
        ("\n\n</s>\n", "'' twice"),
        ("a\r\n</s>\n", "cannot be a word"),
        ("a b\n</s>\n", "cannot be a word"),
    ],
)
def test_a_damaged_list_is_refused_in_one_line(text: str, found: str) -> None:
    with pytest.raises(CorpusError, match=found) as caught:
        Vocabulary.from_text(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ids", [[-1], [0, 1]])
def test_an_id_that_was_never_given_out_has_no_word(ids: list[int]) -> None:
    with pytest.raises(CorpusError, match="ids from 0 to 0"):
        Vocabulary().decode(np.array(ids))


def test_nothing_to_encode_or_decode_is_fine() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.encode([]).dtype == np.int64
    assert vocabulary.lookup([]).tolist() == []
    assert vocabulary.decode(np.array([], dtype=np.int64)) == vocabulary.decode([]) == []
    assert vocabulary.decode([0]) == [SENTENCE_END]


def test_words_that_were_given_out_come_back_in_their_order() -> None:
    grown, restored = Vocabulary(["a", "b"]), Vocabulary(["a", "b"])
    grown.encode(["new", "ä", "newer"])
    later = grown.decode(np.arange(grown.base_size, len(grown)))
    restored.restore(later)
    assert restored.to_text() == grown.to_text()
    assert (
        restored.encode(["newer", "newest"]).tolist() == grown.encode(["newer", "newest"]).tolist()
    )
    with pytest.raises(CorpusError, match="there already"):
        Vocabulary(["a"]).restore(["b", "a"])
