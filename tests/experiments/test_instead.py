"""Others' models as experts: what they say adds up, and they go on where they were."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.arpa import write_arpa
from experiments.instead import FiveGrams, instead_lines, tuned_knnlm
from unbounded.lm import load_model

pytest.importorskip("kenlm")

END = 0
TEXT = np.array([3, 1, 4, 1, 5, 9, END, 2, END, END, 6, 5, 3, 5, 8, 9, 7, END, 3, 1, 4, 2, END])


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    sentences = [["3", "1", "4", "1", "5", "9"], ["2"], [], ["6", "5", "3", "5", "8", "9", "7"]]
    write_arpa([*sentences, ["3", "1", "4", "2"]], tmp_path / "five.arpa", 5)
    return tmp_path / "five.arpa"


def hidden(words: np.ndarray) -> np.ndarray:
    return np.empty((len(words), 0), np.float32)


@pytest.mark.parametrize("context", [[], [3], [3, 1, 4, 1], [6, 5, 3, 5, 8], [7, 7, 7]])
def test_words_after_a_context_and_a_share_for_others_sum_to_one(
    arpa: Path, context: list[int]
) -> None:
    total = 0.0
    for word in range(10):
        words = np.array([*context, word])
        total += FiveGrams(arpa, END).score(hidden(words), words)[-1]
    assert 0.5 < total < 1  # Sentences of one word or none are counted like others.


def test_oov_words_have_nothing_and_a_cut_changes_nothing(arpa: Path) -> None:
    words = np.append(TEXT, [11, 3, 1])
    whole = FiveGrams(arpa, END).score(hidden(words), words)
    assert whole[len(TEXT)] == 0
    assert (whole[: len(TEXT)] > 0).all()
    first, then = FiveGrams(arpa, END), FiveGrams(arpa, END)
    parts = [first.score(hidden(words[:5]), words[:5])]
    then.load([first.state()])
    parts.append(then.score(hidden(words[5:]), words[5:]))
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_knn_lm_remembers_the_training_text_and_nothing_else() -> None:
    model = load_model(Path("default"))
    assert model.text is not None
    short = replace(model, text=model.text[:3_000])
    knnlm = tuned_knnlm(short, model.text[3_000:3_500])
    assert len(knnlm.cache.datastore) == 3_000
    assert knnlm.closed
    words = model.text[:50]
    before, state = model.lm.start()
    states = np.concatenate([before, model.lm.advance(state, words)[0]])[:-1]
    knnlm.score(states, words)
    assert len(knnlm.cache.datastore) == 3_000
    assert {"5-grams", "knnlm", "dynamic", "full"} <= instead_lines().keys()
