"""Pieces as words: names that a vocabulary can hold, text again, words as people count them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers_small import TEXT, tokenizer
from unbounded.errors import ModelError
from unbounded.lm.subwords import PieceTokenizer

PIECES = PieceTokenizer(tokenizer(), 310)

lines = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)


@given(line=lines)
@settings(max_examples=100, deadline=None)
def test_any_line_comes_back_and_its_characters_are_counted(line: str) -> None:
    words = PIECES.words(line)
    assert PIECES.text(words) == line.removeprefix(" ")
    assert PIECES.characters(words) == len(line)
    assert PIECES.vocabulary.lookup(words).tolist() == PIECES.ids(line)


def test_every_id_has_a_name_of_its_own_and_a_line_end_is_a_sentence_end() -> None:
    vocabulary = PIECES.vocabulary
    assert len(vocabulary) == vocabulary.base_size == 310
    assert vocabulary.lookup(["</s>"]).tolist() == [PIECES.end]
    assert PIECES.text([*PIECES.words("it rains"), "</s>", *PIECES.words("it")]) == "it rains\nit"


def test_a_text_that_speaks_of_its_end_does_not_end() -> None:
    assert "<|endoftext|>" not in PIECES.words("say <|endoftext|> aloud")
    assert PIECES.text(PIECES.words("say <|endoftext|> aloud")) == "say <|endoftext|> aloud"


@pytest.mark.parametrize("text", ["a </s> b", "<unk>", "a <unk>c</s>"])
def test_names_of_reserved_pieces_are_text_to_a_tokenizer_in_python_too(
    text: str, tmp_path: Path
) -> None:
    from transformers import CTRLTokenizer

    letters = [f"{letter}{more}" for letter in "abcsunk<>/" for more in ("@@", "")]
    names = {name: number for number, name in enumerate(["<unk>", "</s>", *letters])}
    (tmp_path / "vocab.json").write_text(json.dumps(names))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    files = (str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    pieces = PieceTokenizer(CTRLTokenizer(*files, eos_token="</s>"), len(names))
    assert pieces.end == names["</s>"]
    assert not {pieces.end, names["<unk>"]} & set(pieces.ids(text))
    assert "</s>" not in pieces.words(text)


def test_words_begin_after_spaces_and_between_letters_and_signs() -> None:
    pieces = [*PIECES.words("unhappy naïve zebras, 12.5 (ok)"), "</s>", *PIECES.words("then")]
    starts = PIECES.starts(pieces).tolist()
    stops = [*starts[1:], len(pieces)]
    words = [PIECES.text(pieces[a:b]).strip() for a, b in zip(starts, stops, strict=True)]
    assert words == [
        *("unhappy", "naïve", "zebras", ",", "12", ".", "5", "(", "ok", ")"),
        *("", "then"),
    ]
    # A space of its own belongs to what follows.
    assert PIECES.starts(["Ġ", "1", "2", "Ġ", "x"]).tolist() == [0, 3]


def test_pieces_are_shown_as_they_stand_in_a_text() -> None:
    pieces = ("Ġcat", "at", ",", "</s>")
    assert [PIECES.shown(piece) for piece in pieces] == ["cat", "…at", ",", "</s>"]


def test_a_tokenizer_of_another_network_is_refused() -> None:
    small = PieceTokenizer(tokenizer(), 260)
    with pytest.raises(ModelError, match="pieces that the network of 260 does not know"):
        small.words(TEXT.splitlines()[0])


def test_sentencepiece_names_are_read_as_what_they_stand_for() -> None:
    class Few:
        """As little of a tokenizer as is looked at."""

        all_special_tokens = ("<s>", "</s>")
        eos_token_id = 1
        names = ("<s>", "</s>", "<0x0A>", "▁it", "▁rains", "s", "two words", "two words")

        def __len__(self) -> int:
            return len(self.names)

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [self.names[number] for number in ids]

        def get_added_vocab(self) -> dict[str, int]:
            return {}

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return {"\n": [2], "it rains": [3, 4]}[text]

        def decode(self, ids: list[int]) -> str:
            return {2: "\n"}[ids[0]]

    few: Any = Few()
    pieces = PieceTokenizer(few, 9)
    assert pieces.words("it rains") == ["▁it", "▁rains"]
    assert pieces.text(["▁it", "▁rains", "</s>", "▁it"]) == "it rains\nit"
    # The piece that is called like our sentence end has another name; so has all that has spaces.
    assert pieces.vocabulary.decode(pieces.vocabulary.lookup(["</s>"])) == ["</s>"]
    assert pieces.vocabulary.lookup(["</s>", "<piece:1>", "<piece:7>", "<piece:8>"]).tolist() == [
        *(2, 1, 7, 8)
    ]
