import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbounded.corpus import SENTENCE_END, Tokenizer, detokenize
from unbounded.demo import demo_text

words = Tokenizer().words


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Hello, world! How are you?", "hello, world! How are you?"),
        ("Mr. Smith doesn't pay $5.", "Mr. smith doesn't pay $5."),
        ('She said "no" and (then) left.', 'she said "no" and (then) left.'),
        ("The dogs' bowl; it's 5% full: yes...", "the dogs' bowl; it's 5% full: yes..."),
        ("He came. The U.S. won.", "he came. The u.s. won."),
        ("and/or well-known", "and/or well-known"),
        ("See No. 5 on Jan. 7.", "see No. 5 on Jan. 7."),
        ("", ""),
    ],
)
def test_text_is_written_as_people_write_it_and_splits_into_the_same_words(
    line: str, shown: str
) -> None:
    assert detokenize(words(line)) == shown
    assert words(shown) == words(line)


def test_each_sentence_has_its_own_line() -> None:
    sentences = [*words("It rains."), SENTENCE_END, *words('"It pours."'), SENTENCE_END]
    assert detokenize(sentences) == 'it rains.\n"it pours."\n'


def test_nearly_all_real_text_comes_back() -> None:
    lines = [line.text for line in demo_text("sotu", years=range(1900, 2030, 30))]
    same = [words(detokenize(words(line))) == words(line) for line in lines]
    assert sum(same) / len(same) > 0.98  # measured 1.0


WORDS = st.sampled_from(["the", "rain", "o'er", "5", "1,000", "mr.", "u.s.", "don't", "well-known"])


@given(st.lists(st.tuples(st.lists(WORDS, min_size=1), st.sampled_from(".?!")), max_size=4))
def test_simple_sentences_come_back(sentences: list[tuple[list[str], str]]) -> None:
    text = " ".join(f"A {' '.join(inner)} end{mark}" for inner, mark in sentences)
    assert words(detokenize(words(text))) == words(text)


@given(st.lists(st.text(min_size=1)))
def test_any_words_can_be_shown(some: list[str]) -> None:
    shown = detokenize(some)
    letters = "".join(word.replace(SENTENCE_END, "") for word in some)
    assert len(shown) >= len("".join(letters.split()))
