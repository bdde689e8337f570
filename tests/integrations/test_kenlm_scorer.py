"""A script for KenLM runs with the import changed, on the real KenLM and on ours."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integrations.small_model import TEXT, small_folder, small_model
from unbounded.errors import ModelError
from unbounded.integrations.kenlm_scorer import Scorer, State

SCRIPT = """
model = kenlm.Model(path)
sentence = "the people of the nation"
total = model.score(sentence)
words = [*sentence.split(), "</s>"]
full = list(model.full_scores(sentence))
state, out = kenlm.State(), kenlm.State()
model.BeginSentenceWrite(state)
walked = 0.0
for word in words:
    walked += model.BaseScore(state, word, out)
    state, out = out, state
null = kenlm.State()
model.NullContextWrite(null)
bare = model.BaseScore(null, "the", kenlm.State())
found = {
    "order": model.order,
    "total": total,
    "full": [(prob, length, oov) for prob, length, oov in full],
    "walked": walked,
    "perplexity": model.perplexity(sentence),
    "null": (bare, model.score("the", bos=False, eos=False)),
    "longer": model.score(sentence, eos=False) - total,
    "known": ("the" in model, "qqzzyyxx" in model),
    "oov": [oov for _, _, oov in model.full_scores("the qqzzyyxx people")],
}
"""


def arpa(folder: Path) -> Path:
    from experiments.arpa import write_arpa

    lines = ["the people of the nation", "the people of the world", *TEXT]
    write_arpa([line.split() for line in lines], folder / "text.arpa")
    return folder / "text.arpa"


@pytest.mark.parametrize("whose", ["KenLM's", "ours"])
def test_the_same_script_runs_on_both(whose: str, tmp_path: Path) -> None:
    if whose == "ours":
        import unbounded.integrations.kenlm_scorer as module

        kenlm: Any = module
        path = small_folder()
    else:
        kenlm = pytest.importorskip("kenlm")
        path = arpa(tmp_path)
    scope = {"kenlm": kenlm, "path": str(path)}
    exec(SCRIPT, scope)
    found: Any = scope["found"]
    assert found["order"] in (3, 5)
    assert found["total"] < 0
    assert sum(prob for prob, _, _ in found["full"]) == pytest.approx(found["total"], abs=1e-5)
    assert found["walked"] == pytest.approx(found["total"], abs=1e-5)
    assert all(1 <= length <= found["order"] for _, length, _ in found["full"])
    assert found["perplexity"] == pytest.approx(10 ** (-found["total"] / 6), rel=1e-4)
    assert found["null"][0] == pytest.approx(found["null"][1], abs=1e-5)
    assert found["longer"] > 0
    assert found["known"] == (True, False)
    assert found["oov"] == [False, True, False, False]


def test_the_words_of_a_recognizer_are_the_models() -> None:
    scorer = Scorer(small_model())
    plain = scorer.score("the people don't read")
    assert scorer.score("THE PEOPLE(2) DON'T READ(3)") == plain
    assert "PEOPLE(2)" in scorer


def test_all_words_there_are_have_no_more_than_one_together() -> None:
    scorer = Scorer(small_model())
    scorer.read("\n".join(TEXT))
    state = State()
    scorer.BeginSentenceWrite(state)
    vocabulary = scorer.online.vocabulary
    words = [*vocabulary.decode(np.arange(len(vocabulary))), "qqzzyyxx", "vbnm"]
    probs = [10 ** scorer.BaseScore(state, word, State()) for word in words if word.isalpha()]
    assert 0.5 < sum(probs) <= 1 + 1e-6


def test_asking_teaches_nothing_and_reading_does() -> None:
    scorer = Scorer(small_model())
    before = scorer.score("the zorble ate the grass")
    assert scorer.score("the zorble ate the grass") == before
    said = scorer.read("the zorble ate the grass")
    # Not the same: when the second "the" comes, the first is learned.
    assert said == pytest.approx(before, abs=1)
    assert scorer.score("the zorble ate the grass") > before + 2


def test_states_are_compared_copied_and_refused_before_they_are_written() -> None:
    scorer = Scorer(small_model())
    one, other = State(), State()
    with pytest.raises(ModelError, match="never written; use BeginSentenceWrite"):
        scorer.BaseScore(one, "the", other)
    scorer.BeginSentenceWrite(one)
    scorer.BeginSentenceWrite(other)
    assert one == other
    assert hash(one) == hash(copy.deepcopy(one))
    scorer.BaseScore(one, "the", other)
    assert one != other
    assert copy.copy(other) == other


def test_a_memory_is_a_scorer_too(tmp_path: Path) -> None:
    import unbounded
    from unbounded.integrations.kenlm_scorer import opened_scorer

    with unbounded.open(tmp_path / "memory", small_model()) as memory:
        memory.read("\n".join(TEXT))
        scorer = Scorer(memory)
        first = scorer.score("the zorble ate")
        assert math.isfinite(scorer.score("the qqzzyyxx ate"))
        scorer.read("the zorble ate\nthe zorble ate")
        assert scorer.score("the zorble ate") > first
        entries = len(memory)
    with opened_scorer(tmp_path / "memory") as kept:
        assert kept.score("the zorble ate") > first
    with unbounded.open(tmp_path / "memory", small_model(), mode="read") as again:
        assert len(again) == entries


def test_a_transformer_is_refused_in_one_line() -> None:
    from tests.transformers_small import pretrained

    with pytest.raises(ModelError, match="a recognizer has words; give a recurrent model"):
        Scorer(pretrained())
