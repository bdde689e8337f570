"""The referee finds every planted breach, and raises no alarm where there is none."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import said, unbounded
from tests.integrations import planted
from tests.integrations.small_model import TEXT, small_model
from unbounded.errors import ModelError, SettingError
from unbounded.integrations.audit import Audit
from unbounded.integrations.audited import Harnessed, Ours, python_callable

WORDS = [word for line in TEXT * 3 for word in line.split()][:120]


def broken(audited: Callable[..., Any], words: Sequence[str] = WORDS, **options: Any) -> set[str]:
    return {found.check for found in Audit(audited, words, **options).run() if found.kept is False}


@pytest.mark.parametrize(
    ("audited", "check"),
    [
        (planted.TargetInKey, "normalized"),
        (planted.LearnedFirst, "normalized"),
        (planted.LearnedFirstAsked, "scored first"),
        (planted.Unnormalized, "normalized"),
        (planted.TwoPasses, "causal"),
        (planted.TwoPasses, "blocks"),
        (planted.Kept, "single pass"),
        (planted.vocabulary_of_the_future, "causal"),
    ],
)
def test_every_planted_breach_is_found(audited: Callable[..., Any], check: str) -> None:
    planted.Kept.shared = planted.Honest()
    assert check in broken(audited)


@pytest.mark.parametrize(
    "audited", [planted.TargetInKey, planted.LearnedFirst, planted.Unnormalized]
)
def test_a_sum_too_large_is_found_by_a_sample_of_words(audited: Callable[..., Any]) -> None:
    others = [f"word{i}" for i in range(400)]
    assert "normalized" in broken(audited, vocabulary=[*WORDS, *others], samples=200)


@pytest.mark.parametrize("samples", [300, 20])
@pytest.mark.parametrize("audited", [planted.Honest, planted.Asked, planted.honest_text])
def test_the_honest_raise_no_alarm(audited: Callable[..., Any], samples: int) -> None:
    assert broken(audited, samples=samples) == set()


@pytest.mark.parametrize(
    "preset", ["static", "unigram", "local", "unbounded", "full", "adapted", "dynamic"]
)
def test_no_row_of_ours_raises_an_alarm(preset: str) -> None:
    model = small_model()
    words = [word for line in TEXT for word in (*model.tokenizer.words(line), "</s>")][:100]
    found = list(Audit(lambda: Ours(model, preset), words, ["zorble", "xqzv", *words]).run())
    assert [one.kept for one in found] == [True] * 5


def test_kenlm_raises_no_alarm(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    from experiments.arpa import write_arpa

    write_arpa([line.split() for line in TEXT], tmp_path / "text.arpa")
    ngrams = kenlm.Model(str(tmp_path / "text.arpa"))

    class Frozen:
        def __init__(self) -> None:
            self._state = kenlm.State()
            ngrams.BeginSentenceWrite(self._state)

        def score(self, words: Sequence[str]) -> list[float]:
            found = []
            for word in words:
                after = kenlm.State()
                found.append(ngrams.BaseScore(self._state, word, after) * 2.302585092994046)
                self._state = after
            return found

    # All unknown words share one probability, so no more than one of them is summed over.
    assert broken(Frozen) == set()


def test_a_transformer_asked_by_the_harness_raises_no_alarm(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.models.huggingface import HFLM

    from tests.transformers_small import saved

    lm = HFLM(pretrained=str(saved(tmp_path)), device="cpu", batch_size=8)
    words = WORDS[:24]
    assert broken(lambda: Harnessed(lm), words, disjoint=True, samples=30) == set()


def test_words_held_for_impossible_are_alike_in_every_run() -> None:
    class Certain:
        def score(self, words: Sequence[str]) -> list[float]:
            return [-math.inf if word == WORDS[0] else -9.0 for word in words]

    assert broken(Certain) == set()


def test_what_cannot_be_audited_is_one_line() -> None:
    with pytest.raises(SettingError, match="a text of 3 words; at least 16"):
        Audit(planted.Honest, WORDS[:3])
    with pytest.raises(ModelError, match="has no method 'score'"):
        Audit(lambda: 5, WORDS)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="1 scores came for 120 words"):
        broken(lambda words: [0.0])
    with pytest.raises(ModelError, match="at most 0"):
        broken(lambda words: [5.0] * len(words))
    with pytest.raises(ModelError, match="give module:callable"):
        python_callable("json:nothing_there")


def test_the_command_says_a_line_a_check_and_its_status_is_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(TEXT), encoding="utf-8")
    Path("contest_entry.py").write_text(Path(planted.__file__).read_text(encoding="utf-8"))
    kept = said("audit", "contest_entry:Asked", "text.txt")
    assert kept.splitlines()[-1] == "nothing broken was found"
    caught = unbounded("audit", "contest_entry:LearnedFirst", "text.txt", "--json", "-")
    assert caught.returncode == 3, caught.stderr
    assert json.loads(caught.stdout)["broken"] == ["normalized"]
