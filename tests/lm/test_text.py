import numpy as np
import pytest

from unbounded.corpus import Sentence
from unbounded.errors import TrainingError
from unbounded.lm import training_text


def sentences(*lines: str) -> list[Sentence]:
    return [Sentence((*line.split(), "</s>"), "text", n) for n, line in enumerate(lines, 1)]


def test_the_words_after_the_training_words_validate() -> None:
    text = training_text(sentences("b a b", "a b c d"), tokens=6)
    assert text.vocabulary.decode(text.words) == ["b", "a", "b", "</s>", "a", "b"]
    assert text.vocabulary.decode(np.arange(3)) == ["b", "a", "</s>"]
    assert text.counts.tolist() == [3, 2, 1]
    assert text.valid.tolist() == [-1, -1, 2]


def test_validation_words_never_enter_the_vocabulary() -> None:
    text = training_text(sentences("a b"), 10, sentences("c a"))
    assert text.valid.tolist() == [-1, 0, 2]
    assert len(text.vocabulary) == 3


def test_a_short_text_gives_its_last_twentieth() -> None:
    text = training_text(sentences(*["a b c"] * 10), tokens=1_000)
    assert (len(text.words), len(text.valid)) == (38, 2)


def test_nothing_to_train_on_is_said() -> None:
    with pytest.raises(TrainingError, match="0 words to train on"):
        training_text(sentences(), 10)
