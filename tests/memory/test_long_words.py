"""However a text comes in, no word is longer than the limit; what was read before stays."""

from pathlib import Path

import pytest

from tests.memory.texts import FIRST_EDITION, open_toy, state_of, store_of
from unbounded.corpus import Line, Tokenizer, read_sentences, training_text
from unbounded.corpus import tokenizer as tokenizer_module
from unbounded.corpus.tokenizer import LONGEST

LONG = "known1 " + "x" * 5_000 + " " + "李" * 1_000


def longest(words: list[str]) -> int:
    return max(len(word.encode()) for word in words)


def test_every_way_in_has_the_limit(tmp_path: Path) -> None:
    sentences = list(read_sentences([Line("a", n, LONG) for n in range(1, 30)], Tokenizer()))
    vocabulary = training_text(sentences, 1_000).vocabulary
    assert longest(vocabulary.to_text().split()) == LONGEST
    with open_toy(tmp_path / "m") as memory:
        memory.read(LONG, "a")
        for _ in memory.follow([Line("b", 1, LONG)]):
            pass
        assert longest([word for words in store_of(memory).replay() for word in words]) == LONGEST
        assert longest(list(memory.score(LONG).words)) == LONGEST
        assert longest([guess.word for guess in memory.predict(LONG, 50).words]) <= LONGEST
        assert longest(memory.complete(LONG, max_words=20, temperature=1.0).split()) <= LONGEST
        assert memory.forget(matching="x" * LONGEST) == 2 * len([*sentences[0].words])


def test_a_memory_with_longer_words_opens_scores_and_goes_on_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(tokenizer_module, "LONGEST", 1 << 40)
        with open_toy(tmp_path / "m", preset=FIRST_EDITION) as memory:
            memory.read(f"{LONG}\nknown2 known3", "a")
            known, heard = state_of(memory), memory.score("known1 known2 new1").prob.tolist()
            assert longest(list(memory.score(LONG).words)) == 5_000
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert memory.score("known1 known2 new1").prob.tolist() == heard
        assert memory.check(deep=True) == []
        memory.read(LONG, "b")
        assert memory.forget(document="a") == 4 + 3
        assert memory.check(deep=True) == []
