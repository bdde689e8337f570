"""The real pyctcdecode with a model that reads on: a glossary is enough for its words."""

import math

import numpy as np
import pytest

from tests.integrations.small_model import small_model
from unbounded.integrations.kenlm_scorer import Scorer

pytest.importorskip(
    "pyctcdecode", reason="pyctcdecode is not installed: pip install --no-deps pyctcdecode"
)

from pyctcdecode import Alphabet, BeamSearchDecoderCTC

from unbounded.integrations.pyctcdecode_lm import Beginnings, ReadingLM

LABELS = ["", *"abcdefghijklmnopqrstuvwxyz' "]


def heard(text: str, other: str, share: float) -> np.ndarray:
    """A network's output that hears one text with this share, and the other with the rest."""
    rows = []
    for one, two in zip(text, other, strict=True):
        letter = np.full(len(LABELS), 1e-4)
        letter[LABELS.index(one)] += share
        letter[LABELS.index(two)] += 1 - share
        blank = np.full(len(LABELS), 1e-4)
        blank[0] = 1.0
        rows += [letter, blank]
    table = np.array(rows)
    logits: np.ndarray = np.log(table / table.sum(axis=1, keepdims=True))
    return logits


def decoder(lm: ReadingLM) -> BeamSearchDecoderCTC:
    return BeamSearchDecoderCTC(Alphabet.build_alphabet(LABELS), lm)


def test_a_glossary_that_was_read_is_enough_for_its_words() -> None:
    lm = ReadingLM(Scorer(small_model()))
    sound = heard("the sorbel of the people", "the zorble of the people", 0.6)
    assert decoder(lm).decode(sound) != "the zorble of the people"
    lm.read("zorble\nthe zorble of the people\nzorble\nthe zorble")
    assert decoder(lm).decode(sound) == "the zorble of the people"


def test_a_beginning_has_what_all_words_that_begin_so_have() -> None:
    scorer = Scorer(small_model())
    scorer.read("the zorble ate the zorbles")
    beginnings = Beginnings(scorer)
    for word in ("the", "people", "zorbl", "qqzz", "naïve", "a"):
        probs = [beginnings.prob(word[:end]) for end in range(1, len(word) + 1)]
        assert all(0 < prob <= 1 for prob in probs)
        assert probs == sorted(probs, reverse=True)
    # All bytes that a word can begin with: letters, digits and marks of one byte, and the rest.
    firsts = sum(beginnings.prob(chr(letter)) for letter in range(ord("a"), ord("z") + 1))
    assert 0.5 < firsts <= 1 + 1e-6
    assert beginnings.prob("") == 1.0


@pytest.mark.parametrize("beginning", ["th", "peop", "zo", "qx"])
def test_a_beginning_is_its_continuations_and_the_word_itself(beginning: str) -> None:
    scorer = Scorer(small_model())
    beginnings = Beginnings(scorer)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    longer = sum(beginnings.prob(beginning + letter) for letter in letters)
    assert longer <= beginnings.prob(beginning) * (1 + 1e-6)


def test_scores_are_natural_logarithms_with_alpha_and_beta() -> None:
    scorer = Scorer(small_model())
    lm = ReadingLM(scorer, alpha=0.7, beta=0.3)
    state = lm.get_start_state()
    first, middle = lm.score(state, "the")
    last, _ = lm.score(middle, "people", is_last_word=True)
    assert (first + last - 0.6) / 0.7 / math.log(10) == pytest.approx(scorer.score("the people"))
    lm.reset_params(alpha=1.0, beta=0.0)
    assert lm.score(state, "the")[0] == pytest.approx((first - 0.3) / 0.7)
    assert lm.order == scorer.order
