"""Rescoring: exact where prefixes are shared, better as it learns, and hard to break."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.commands import assert_fails, said, unbounded
from tests.integrations.small_model import TEXT, small_folder, small_model
from unbounded.errors import SettingError
from unbounded.integrations.kenlm_scorer import Scorer
from unbounded.integrations.nbest import (
    Hypothesis,
    OnlineWeights,
    Rescorer,
    Utterance,
    Weights,
    errors_of,
    json_lines,
    kaldi_costs,
    kaldi_text,
    log10_probs,
    tuned,
    word_errors,
)


def hypotheses(count: int, seed: int = 1) -> list[str]:
    """Variants of a few sentences, as a recognizer has them: mostly the same words."""
    draw = random.Random(seed)
    words = [word for line in TEXT for word in line.split()]
    found = []
    for _ in range(count):
        said = draw.choice(TEXT).split()
        for _ in range(draw.randint(0, 2)):
            said[draw.randrange(len(said))] = draw.choice([*words, "qqzzyyxx", "READ(2)"])
        found.append(" ".join(said[: draw.randint(0, len(said))]))
    return found


def test_shared_beginnings_change_no_score() -> None:
    scorer = Scorer(small_model())
    scorer.read("\n".join(TEXT))
    texts = [*hypotheses(60), "", "  "]
    before = [scorer.score(text) for text in texts]
    np.testing.assert_allclose(log10_probs(scorer, texts), before, rtol=1e-9)


def test_a_memory_scores_words_that_it_never_met(tmp_path: Path) -> None:
    import unbounded

    with unbounded.open(tmp_path / "memory", small_model()) as memory:
        memory.read("\n".join(TEXT))
        scorer = Scorer(memory)
        texts = hypotheses(30)
        np.testing.assert_allclose(
            log10_probs(scorer, texts), [scorer.score(text) for text in texts], rtol=1e-9
        )


def test_10_000_hypotheses_are_scored() -> None:
    scorer = Scorer(small_model(), preset="static")
    texts = hypotheses(10_000)
    probs = log10_probs(scorer, texts)
    assert probs.shape == (10_000,)
    assert np.isfinite(probs).all()
    assert probs[77] == pytest.approx(scorer.score(texts[77]))


def test_the_winner_is_read_before_the_next_utterance() -> None:
    utterance = Utterance("a", (Hypothesis("the zorble ate", 0.0), Hypothesis("this or will", 0.1)))
    frozen, learning = (
        Rescorer(Scorer(small_model()), Weights(1.0, 0.0, 0.0), learn=learn)
        for learn in (False, True)
    )
    first = frozen.choose(utterance)
    assert first[0] == 1
    np.testing.assert_allclose(learning.choose(utterance)[1], first[1])
    np.testing.assert_allclose(frozen.choose(utterance)[1], first[1])
    again = learning.choose(utterance)[1]
    assert again[1, 1] > first[1][1, 1] + 1


def test_weights_are_tuned_on_a_dev_part_or_learned_online() -> None:
    draw = np.random.default_rng(1)
    features, errors = [], []
    for _ in range(60):
        rows = draw.normal(size=(20, 3)) * [1.0, 1.0, 1.0]
        features.append(rows)
        errors.append(np.where(np.arange(20) == (rows @ [1.0, 8.0, 0.0]).argmax(), 0, 3))
    flat = Weights(1.0, 0.0, 0.0)
    online = OnlineWeights(flat)
    for rows, wrong in zip(features, errors, strict=True):
        online.learn(rows, wrong)

    def total(weights: Weights) -> int:
        pairs = zip(features, errors, strict=True)
        return sum(int(wrong[weights.best(rows)]) for rows, wrong in pairs)

    assert total(tuned(features, errors)) < total(flat) / 4
    assert total(online.weights) < total(flat) / 2


def test_errors_are_counted_as_wer_counts_them() -> None:
    assert word_errors("", "") == 0
    assert word_errors("a b c", "") == 3
    assert word_errors("a b c", "a x c d") == 2
    utterance = Utterance("u", (Hypothesis("a b", 0.0), Hypothesis("b", 0.0)))
    assert errors_of(utterance, "a b").tolist() == [0, 1]


BAD = {
    "not json": "this is not JSON",
    "[1, 2]": "an object with utt, text and score is needed",
    '{"utt": "a", "text": "x"}': "an object with utt, text and score is needed",
    '{"utt": "a", "text": 5, "score": 1}': "text must be a string",
    '{"utt": "a", "text": "x", "score": NaN}': "the score is nan",
    '{"utt": "a", "text": "x", "score": Infinity}': "the score is inf",
    '{"utt": "a", "text": "x", "score": "5"}': "score is '5'; a number is needed",
    '{"utt": "a", "text": "x", "score": true}': "score is True",
    "[" * 100_000: "this is not JSON",
}


@pytest.mark.parametrize(("line", "message"), BAD.items(), ids=lambda text: text[:40])
def test_a_bad_line_is_one_line_and_the_others_stay(line: str, message: str) -> None:
    good = '{"utt": "a", "text": "", "score": -1.5, "nbest_rank": 7}'
    said: list[str] = []
    (found,) = json_lines([good, line, "", good], said.append)
    assert [h.text for h in found.hypotheses] == ["", ""]
    assert found.hypotheses[0].fields["nbest_rank"] == 7
    assert said == [f"line 2: {said[0].removeprefix('line 2: ')}"]
    assert message in said[0]
    assert said[0].endswith("this hypothesis is left out")


def test_kaldis_text_and_costs_are_read() -> None:
    said: list[str] = []
    costs = kaldi_costs(["u-a-1 2.5", "u-a-1 1", "u-a-2 7", "u-a-3 nan", "v-1 0"], said.append)
    lines = ["u-a-1 the cat", "u-a-2", "u-a-3 x", "noise", "v-1 a dog"]
    first, second = kaldi_text(lines, costs, said.append)
    assert (first.name, second.name) == ("u-a", "v")
    assert [(h.text, h.score) for h in first.hypotheses] == [("the cat", -3.5), ("", -7.0)]
    assert [line.split(";")[0] for line in said] == [
        "costs, line 4: the score is nan",
        "line 3: 'u-a-3' has no cost",
        "line 4: 'noise' is no UTT-N",
    ]


def test_weights_that_are_none_are_refused() -> None:
    for text in ("", "1,2", "1,x,2", "1,nan,0"):
        with pytest.raises(SettingError, match="weights"):
            Weights.parse(text)


def test_the_command_rescores_learns_and_counts_errors(tmp_path: Path) -> None:
    lines = []
    for number in range(6):
        for rank, text in enumerate(("this or will ate", "the zorble ate", "")):
            fields = {"utt": f"u{number}", "text": text, "score": -0.1 * rank, "rank": rank}
            lines.append(json.dumps(fields))
    (tmp_path / "nbest.jsonl").write_text("\n".join([*lines, "broken"]), encoding="utf-8")
    spoken = "\n".join(f"u{number} the zorble ate" for number in range(6))
    (tmp_path / "said.txt").write_text(spoken, encoding="utf-8")
    ran = unbounded(
        *("rescore", small_folder(), tmp_path / "nbest.jsonl", "--references"),
        *(tmp_path / "said.txt", "--dev", 2, "--online-weights", "--learn"),
        *("--json", tmp_path / "figures.json"),
    )
    assert ran.returncode == 0, ran.stderr
    winners = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["utt"] for one in winners] == [f"u{number}" for number in range(6)]
    assert all("rank" in one and "language" in one for one in winners)
    assert "line 19: this is not JSON" in ran.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["wer"]["oracle"] == 0.0
    assert figures["wer"]["before"] == pytest.approx(1.0)
    assert figures["utterances"] == 6
    few = unbounded(
        *("rescore", small_folder(), tmp_path / "nbest.jsonl", "--references"),
        *(tmp_path / "said.txt", "--dev", 7),
    )
    assert "weights were not tuned: --dev 7 needs 7 utterances, there are 6" in few.stderr


def test_the_command_takes_kaldis_text_and_refuses_what_is_empty(tmp_path: Path) -> None:
    (tmp_path / "nbest.txt").write_text("u-1 the people\nu-2 of this\n", encoding="utf-8")
    rescore = ("rescore", small_folder())
    chosen = said(*rescore, tmp_path / "nbest.txt", "--weights", "1,1,0")
    assert chosen in ("u the people\n", "u of this\n")
    (tmp_path / "empty").touch()
    assert_fails([*rescore, tmp_path / "empty"], "empty has no first line")
