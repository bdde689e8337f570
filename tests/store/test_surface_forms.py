"""How words were written comes back as it was, in half a byte a word; old journals have none."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.memory.texts import open_toy
from unbounded.corpus import Line, Tokenizer, read_sentences
from unbounded.store.records import forms_payload, read_forms

LINES = st.text(st.sampled_from("aBİß \t.,'\u00ad\ud800:14Ǆ"), max_size=40)


@given(st.lists(LINES, max_size=5))
@example(["\u00ad\ud800", "\u00ad \ud800"])
def test_lines_come_back_as_they_were_written(lines: list[str]) -> None:
    given = [Line("a", number, line) for number, line in enumerate(lines)]
    for sentence in read_sentences(given, Tokenizer(), forms=True):
        assert sentence.forms is not None
        data = forms_payload(sentence.words, sentence.forms)
        assert read_forms(sentence.words, memoryview(data)) == list(sentence.forms)
        written = lines[sentence.line].replace("\ud800", "\ufffd")
        assert written.startswith("".join(sentence.forms))
        unseen = written[len("".join(sentence.forms)) :].replace("\u00ad", "").strip()
        assert not unseen


def test_a_word_takes_half_a_byte() -> None:
    words = ["the", "weekly", "halcyon", "met", "."] * 100
    forms = ["The", " weekly", " Halcyon", " met", "."] * 100
    assert len(forms_payload(words, forms)) == 4 + 250
    with pytest.raises(ValueError, match="forms of 500 words, for 1"):
        read_forms(["a"], memoryview(forms_payload(words, forms)))


def test_passages_show_the_text_as_it_was_written_and_mark_the_word(tmp_path: Path) -> None:
    def shown() -> str:
        guess = next(one for one in memory.predict("known1").words if one.word == "zorble")
        assert guess.written == "Zorble"
        passage = guess.sources[0]
        assert passage.text[passage.start : passage.end] == "Zorble"
        return passage.text

    text = "Known1  Zorble sleeps,\tat 14:30.\nHm.\n"
    with open_toy(tmp_path / "m") as memory:
        memory.read("GONE gone", "gone")
        memory.read(text * 2, "zoo")
        ends = next(one for one in memory.predict("hm .").words if one.word == "</s>")
        assert ends.written == "\n"
        whole = "sleeps,\tat 14:30. / Hm. / Known1  Zorble sleeps,\tat 14:30"
        assert shown() == whole
        memory.forget("gone")
        memory.compact()
        assert shown() == whole
    with open_toy(tmp_path / "m") as memory:
        assert shown() == whole
