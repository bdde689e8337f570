import time
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

from unbounded.corpus import SENTENCE_END, Pretokenized, Tokenizer, WordSplitter, tokenizer_of
from unbounded.corpus import tokenizer as tokenizer_module
from unbounded.corpus.tokenizer import LONGEST
from unbounded.demo import demo_text
from unbounded.errors import SettingError

# Everything the rules look at, and little else, so that short texts are full of trouble.
TRICKY = st.lists(
    st.sampled_from(list("aZz05.,'`-</s>&\" \t\n\x00\xa0½\u0301ß李\u200b\ud800"))
    | st.sampled_from(["Mr.", "No. 5", "e.g.", " '", ".' ", "dogs'", "</s>", ", ", "!?"]),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Hello, world!", ["hello", ",", "world", "!"]),
        ("don't, I'm, o'clock", ["don", "'t", ",", "i", "'m", ",", "o", "'clock"]),
        ("the 1990's, the '90s", ["the", "1990", "'s", ",", "the", "'", "90s"]),
        ("the dogs' bowl", ["the", "dogs", "'", "bowl"]),
        ("'Tis", ["'tis"]),
        ("so 'tis", ["so", "'", "tis"]),
        ("$1,000.50 (5%)", ["$", "1,000.50", "(", "5", "%", ")"]),
        ("1,2,a ,3 4,", ["1,2", ",", "a", ",", "3", "4", ","]),
        ("Mr. Smith came. He left.", ["mr.", "smith", "came", ".", "he", "left", "."]),
        ("He came. she left", ["he", "came.", "she", "left"]),
        ("The U.S. and e.g. Rome.", ["the", "u.s.", "and", "e.g.", "rome", "."]),
        ("No. 5 said No. Yes", ["no.", "5", "said", "no", ".", "yes"]),
        ("Well... he said..", ["well", "...", "he", "said", ".."]),
        ("He said 'no.'", ["he", "said", "'", "no", ".", "'"]),
        ("well-known -- and/or _it_", ["well-known", "--", "and", "/", "or", "_", "it", "_"]),
        ("a@b.com & #1", ["a", "@", "b.com", "&", "#", "1"]),
        ("x² ½ naïve 李安", ["x", "²", "½", "naïve", "李安"]),
        ("cafe\u0301 co\xadop \u200bx\x00y", ["cafe\u0301", "coop", "xy"]),
        ("tab\tno\xa0break\u3000wide\u2028line", ["tab", "no", "break", "wide", "line"]),
        ("\ud83d!", ["\ufffd", "!"]),
        ("", []),
        (" \x00\u200b\n", []),
    ],
)
def test_lines_are_split_as_the_rules_say(line: str, words: list[str]) -> None:
    assert Tokenizer().words(line) == words


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("letter", ["a", "é", "李", "𠀀", "İ", "Ⱥ", "1", "x.", "\u0301"])
def test_no_word_is_longer_than_the_limit_and_nothing_of_it_is_lost(
    letter: str, lowercase: bool
) -> None:
    line = f"a {letter * 5_000} b-{letter * 101}"
    words = Tokenizer(lowercase).words(line)
    assert max(len(word.encode()) for word in words) <= LONGEST
    # As long as they can be: what follows a piece would not have fit.
    assert all(len((a + b[:2]).encode()) > LONGEST for a, b in pairwise(words[2:-4]))
    whole = line.lower() if lowercase else line
    assert "".join(words) == whole.replace(" ", "")
    spans = Tokenizer(lowercase).spans(line)
    assert "".join(line[start:end] for start, end in spans) == line.replace(" ", "")


def test_a_word_of_a_million_letters_is_cut_in_no_time() -> None:
    began = time.perf_counter()
    assert len(Tokenizer().words("x" * 1_000_000)) == 10_000
    # Measured 0.01 s; minutes if each piece were cut off a copy of the rest.
    assert time.perf_counter() - began < 20


def test_letters_keep_their_case_if_asked_to() -> None:
    assert Tokenizer(lowercase=False).words("Mr. Smith's") == ["Mr.", "Smith", "'s"]


@pytest.mark.parametrize("text", ["sotu", "chat"])
def test_the_words_are_those_of_the_reference_on_real_text(text: str) -> None:
    reference = MosesTokenizer(lang="en")
    ours = Tokenizer(lowercase=False)
    lines = [line.text for line in islice(demo_text(text), 0, 40_000, 20)]
    same = [ours.words(x) == reference.tokenize(x, escape=False) for x in lines]
    assert sum(same) / len(same) > 0.999  # measured 1.0 on both


@given(TRICKY)
def test_the_reference_agrees_on_single_words_full_of_trouble(line: str) -> None:
    visible = "".join(c for c in line if c not in "\x00\u0301李\u200b\ud800½")
    word = visible.split()[:1]
    reference = MosesTokenizer(lang="en")
    if word:
        assert Tokenizer(lowercase=False).words(word[0]) == reference.tokenize(
            word[0], escape=False
        )


SHARED = Tokenizer()


@given(TRICKY, st.booleans())
def test_the_cache_changes_nothing(line: str, lowercase: bool) -> None:
    fresh = Tokenizer(lowercase)
    clean = tokenizer_module._INVISIBLE.sub("", line).replace("\ud800", "\ufffd")
    chunks = clean.split()
    expected = [
        word
        for at, chunk in enumerate(chunks)
        for word in tokenizer_module._split(
            chunk,
            first=at == 0,
            following="".join(chunks[at + 1 : at + 2])[:1],
            lowercase=lowercase,
        )
    ]
    assert fresh.words(line) == expected
    assert fresh.words(line) == expected
    if lowercase:
        assert SHARED.words(line) == expected


@pytest.mark.parametrize("tokenizer", [Tokenizer(), Pretokenized()])
@given(line=st.text() | TRICKY)
def test_no_word_is_empty_or_has_white_space_or_is_the_sentence_end(
    tokenizer: WordSplitter, line: str
) -> None:
    for word in tokenizer.words(line):
        assert word.split() == [word]
        assert word != SENTENCE_END
        assert word.encode()


@pytest.mark.parametrize("literal", ["</s>", "a</s>b", "'</s>'", "</S>", "<\x00/s>", "＜/s＞"])
def test_a_sentence_end_that_is_typed_is_only_text(literal: str) -> None:
    assert SENTENCE_END not in Tokenizer().words(f"x {literal} {literal}")


@given(st.text() | TRICKY)
def test_nothing_visible_is_lost(line: str) -> None:
    words = Tokenizer(lowercase=False).words(line)
    clean = tokenizer_module._SURROGATE.sub("\ufffd", tokenizer_module._INVISIBLE.sub("", line))
    assert "".join(words) == "".join(clean.split())


@pytest.mark.parametrize("unit", ["a", "a.", ".", "'", "a'", ",", "1,", "&", "ß", "-", "\x00", "½"])
def test_a_megabyte_without_a_space_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    Tokenizer().words(unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 5  # measured below 1; quadratic would be minutes


def test_the_cache_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "CACHE_ENTRIES", 10)
    tokenizer = Tokenizer()
    for number in range(1000):
        assert tokenizer.words(f"w{number} x{number}.") == [f"w{number}", f"x{number}", "."]
        assert len(tokenizer._cache) <= 10
    tokenizer.words("x" * 1000)
    assert "x" * 1000 not in tokenizer._cache


def test_a_tokenizer_is_a_value_and_can_be_described() -> None:
    for tokenizer in (Tokenizer(), Tokenizer(lowercase=False), Pretokenized()):
        tokenizer.words("some words")
        assert tokenizer_of(tokenizer.config()) == tokenizer
    assert Tokenizer() != Tokenizer(lowercase=False)


@pytest.mark.parametrize(
    "config",
    [{}, {"rules": "bpe", "lowercase": True}, {"rules": "europarl-en", "lowercase": True, "x": 1}],
)
def test_a_description_that_is_not_known_is_refused(config: dict[str, bool | str | int]) -> None:
    with pytest.raises(SettingError, match="described as"):
        tokenizer_of(dict(config))


def test_text_that_is_tokenized_already_is_taken_as_it_is() -> None:
    line = "mr. <unk> is N years old , the U.S. 's oldest"
    words = Pretokenized().words(line)
    assert words == line.split()
    assert Pretokenized().text([*words, SENTENCE_END, *words]) == f"{line}\n{line}"
    assert "".join(line[a:b] for a, b in Pretokenized().spans(line)) == line.replace(" ", "")
    long = Pretokenized().words("x" * 250)
    assert [len(word) for word in long] == [100, 100, 50]
