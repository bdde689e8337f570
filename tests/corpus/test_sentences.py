from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbounded.corpus import SENTENCE_END, Block, Line, Sentence, Tokenizer, blocks, read_sentences
from unbounded.errors import SettingError

# Tuples, and not sentences: the shape checks draw random numbers, which a strategy must not do.
STREAMS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), max_size=5),
        st.sampled_from(["x.txt", "x.txt#2", "y.txt"]),
        st.integers(1, 1 << 40),
    )
)


def sourced(stream: list[Block]) -> list[tuple[str, str, int]]:
    return [
        (word, block.documents[document], line)
        for block in stream
        for word, document, line in zip(
            block.words, block.document.tolist(), block.line.tolist(), strict=True
        )
    ]


@given(STREAMS, st.integers(1, 9), st.none() | st.integers(0, 20))
def test_blocks_hold_every_word_and_its_source_however_they_are_cut(
    stream: list[tuple[list[str], str, int]], size: int, tokens: int | None
) -> None:
    sentences = [Sentence((*words, SENTENCE_END), name, line) for words, name, line in stream]
    words = [(word, s.document, s.line) for s in sentences for word in s.words][:tokens]
    found = list(blocks(sentences, size, tokens))
    assert sourced(found) == words
    assert all(len(block.words) == size for block in found[:-1])
    assert all(0 < len(block.words) <= size for block in found)
    assert all(set(block.document) == set(range(len(block.documents))) for block in found)


def test_a_stream_is_read_no_further_than_its_words_are_needed() -> None:
    def endless() -> Iterator[Sentence]:
        while True:
            yield Sentence(("a", SENTENCE_END), "x", 1)

    assert [len(block.words) for block in blocks(endless(), 2, 5)] == [2, 2, 1]
    assert list(blocks(endless(), 2, 0)) == []


def test_a_block_is_given_as_soon_as_it_is_full() -> None:
    def broken() -> Iterator[Sentence]:
        yield Sentence(("a", SENTENCE_END), "x", 1)
        pytest.fail("read too far")

    assert next(blocks(broken(), 2)).words == ["a", SENTENCE_END]


def test_a_block_without_words_is_refused() -> None:
    with pytest.raises(SettingError, match="1 or more"):
        next(blocks([], 0))


def test_a_line_without_words_is_no_sentence() -> None:
    lines = [Line("x", 1, "It rains."), Line("x", 2, "\x00 \u200b"), Line("y", 3, "</s>")]
    assert list(read_sentences(lines, Tokenizer())) == [
        Sentence(("it", "rains", ".", SENTENCE_END), "x", 1),
        Sentence(("<", "/", "s", ">", SENTENCE_END), "y", 3),
    ]
