"""Speaking, recognizing and rescoring, with the real programs, on very little."""

import json
import shutil
from pathlib import Path

import pytest

from tests.integrations.small_model import TEXT, small_model
from unbounded.integrations.nbest import Hypothesis, Utterance, word_errors


def test_what_is_spoken_is_recognized_with_alternatives() -> None:
    pytest.importorskip("pocketsphinx")
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed: apt-get install espeak-ng")
    from experiments.speech import Recognizer, spoken

    said = "this is certainly a beautiful country"
    recognizer = Recognizer()
    assert {"heathcliff", "country"} <= recognizer.words
    answer, best = recognizer.recognize(spoken(said, 2))
    assert word_errors(said, answer) <= 3
    texts = [text for text, _ in best]
    assert 10 < len(texts) == len(set(texts)) <= 100
    scores = [score for _, score in best]
    assert scores == sorted(scores, reverse=True)
    assert min(word_errors(said, text) for text in texts) <= 1


def test_every_system_is_measured_on_the_same_lists(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    from experiments.recognition import NAMES, draw, measure, table

    utterances = [
        Utterance(
            str(number),
            (Hypothesis("this or will ate", 0.1), Hypothesis(line, 0.0), Hypothesis("", -0.5)),
            line,
        )
        for number, line in enumerate(TEXT * 4)
    ]
    found = measure(utterances, small_model(), tmp_path, dev=8, first=["the people of the nation"])
    assert set(found["wer"]) == set(NAMES)
    assert found["wer"]["oracle"] == 0.0
    assert found["wer"]["learning"] <= found["wer"]["recognizer"]
    assert found["never_seen"]["heard"]["oracle"] == found["never_seen"]["said"] > 0
    assert len(found["errors"]["learning"]) == found["utterances"] == 24
    assert table(json.loads(json.dumps(found))).count("\n") == len(NAMES) + 1
    draw(found, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").stat().st_size > 1000


def test_n_grams_in_arpas_format_sum_to_one_under_kenlm(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    from experiments.arpa import write_arpa

    write_arpa([line.split() for line in TEXT], tmp_path / "text.arpa")
    ngrams = kenlm.Model(str(tmp_path / "text.arpa"))
    words = {word for line in TEXT for word in line.split()} | {"</s>", "<unk>"}
    for context in ([], ["the"], ["the", "zorble"], ["nobody", "knows"]):
        state = kenlm.State()
        ngrams.BeginSentenceWrite(state)
        for word in context:
            after = kenlm.State()
            ngrams.BaseScore(state, word, after)
            state = after
        total = sum(10 ** ngrams.BaseScore(state, word, kenlm.State()) for word in words)
        assert total == pytest.approx(1.0, abs=1e-4)
