"""Keystrokes: counted as a keyboard would, fewer with more suggestions and with a memory."""

from tests.integrations.small_model import TEXT, small_model
from unbounded.evaluation.keystrokes import keystrokes
from unbounded.evaluation.metrics import OnlineQuantile

WORDS = [word for line in TEXT[:3] * 3 for word in (*line.split(), ".", "</s>")]


def test_more_suggestions_and_a_memory_save_more() -> None:
    static, full = (keystrokes(small_model(), preset, WORDS) for preset in ("static", "full"))
    assert static.words == full.words == len(WORDS)
    plain = sum(1 if word in ("</s>", ".") else len(word) + 1 for word in WORDS)
    assert static.letter_by_letter == full.letter_by_letter == plain
    assert list(full.saved.values()) == sorted(full.saved.values())
    assert 0 <= static.saved[1] <= static.saved[5] < 1
    assert full.saved[3] > static.saved[3] + 0.1


def test_a_word_that_nobody_knows_is_typed() -> None:
    typed = keystrokes(small_model(), "static", ["qqzzyyxx", "</s>"])
    assert typed.with_suggestions == {1: 10, 3: 10, 5: 10}


def test_a_quantile_goes_by_what_came_before() -> None:
    seen = OnlineQuantile()
    assert seen.add(1.0) is None
    assert [seen.add(number) for number in (1.0, 2.0, 0.5, 1e9, -3.0)] == [0.5, 1.0, 0.0, 1.0, 0.0]
