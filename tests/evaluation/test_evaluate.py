"""A model over a text: what can be given, n-grams of the training text, OOV words by characters."""

import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.lm.test_training import NETWORK
from unbounded.corpus import Line, Reader
from unbounded.demo import demo_text
from unbounded.errors import SettingError
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.experts import NGram
from unbounded.lm import Pretrained, TrainingConfig, train
from unbounded.presets import MemoryConfig, build_online

CONFIG = EvaluationConfig(rows=("static", "full"), memory=MemoryConfig(k=16), tokens=1_500)


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return list(islice(demo_text("sotu", years=range(1950, 1960)), 500))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]) -> Pretrained:
    folder, config = tmp_path_factory.mktemp("evaluate"), TrainingConfig(epochs=1, streams=8)
    return train(lines[:400], folder / "model", tokens=6_000, network=NETWORK, config=config)


def test_a_text_is_a_path_several_a_reader_or_lines_and_a_model_its_folder(
    model: Pretrained, lines: list[Line], tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(line.text for line in lines[400:420]))
    config = replace(CONFIG, rows=("static",))
    assert model.folder is not None
    found = [
        evaluate(who, text, config).rows[0].tally.perplexity
        for who, text in (
            (model, lines[400:420]),
            (model, iter(lines[400:420])),
            (model, Reader([path])),
            (model, path),
            (model.folder, str(path)),
            (str(model.folder), [str(path)]),
            (model, (path,)),
        )
    ]
    assert found == [found[0]] * len(found)


def test_what_is_no_text_or_no_model_is_named_in_one_line(
    model: Pretrained, tmp_path: Path
) -> None:
    """In a process without the checks of types that tests have."""
    (tmp_path / "a.txt").write_text("a b c")
    tried = [(5, "a.txt"), (str(model.folder), 5), (str(model.folder), None)]
    tried += [(str(model.folder), [1, 2]), (str(model.folder), "nowhere.txt")]
    code = f"""
import unbounded
for model, text in {tried!r}:
    try:
        unbounded.evaluate(model, text)
    except unbounded.UnboundedError as error:
        print(str(error))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    no_model, five, nothing, numbers, nowhere = ran.stdout.splitlines()
    assert "5 is no model but int; give the path of a folder" in no_model
    assert "5 is no text but int; give a path, a list of paths, a Reader, or lines" in five
    assert "None is no text but NoneType" in nothing
    assert "1 is no path but int" in numbers
    assert "nowhere.txt" in nowhere


def test_it_has_read_the_training_text_and_then_goes_on(model: Pretrained) -> None:
    assert model.text is not None
    expected = NGram(9_000)
    expected.score(np.empty((len(model.text), 0)), model.text)
    asked = ["uniform", "ngram", "train_ngram"]
    build_online(model, 9_000, asked, MemoryConfig()).read(["we", "zorble"])  # teaches nobody else
    online = build_online(model, 9_000, asked, MemoryConfig())
    words = model.tokenizer.words("the congress of the united states and the zorble")
    reading = online.read([*words, *words])
    found = dict(zip(reading.experts, reading.table.T, strict=True))
    none = np.empty((len(reading.ids), 0))
    np.testing.assert_array_equal(found["train_ngram"], expected.score(none, reading.ids))
    np.testing.assert_array_equal(found["ngram"], NGram(9_000).score(none, reading.ids))
    assert (
        found["train_ngram"][-1] > 100 * found["train_ngram"][len(words) - 1]
    )  # it has met the zorble


def test_only_what_is_read_first_is_counted(model: Pretrained, lines: list[Line]) -> None:
    """The full vocabulary has the words of what is read first, and none of what is not."""
    first = [Line("first", 1, "zorble quokka axolotl numbat")]
    config = replace(CONFIG, rows=("static",), tokens=3)
    alone, two, all_five = (
        evaluate(model, lines[-20:], replace(config, first_tokens=many), first=text).vocabulary
        for many, text in ((None, None), (2, first), (None, first))
    )
    assert (two - alone, all_five - alone) == (2, 4)


def test_its_text_helps_near_it_and_a_model_without_says_so(
    model: Pretrained, lines: list[Line]
) -> None:
    old = replace(model, text=None)
    with_text, without = (evaluate(one, lines[400:], CONFIG) for one in (model, old))
    static, full = with_text.rows
    assert static.tally.perplexity == without.rows[0].tally.perplexity
    assert full.tally.perplexity < 0.98 * without.rows[1].tally.perplexity
    assert with_text.memory["ngrams_bytes"] > without.memory["ngram_bytes"]
    assert "ngrams" not in without.rows[1].experts
    assert [event for event in without.events if "no training text" in event] == without.events[:1]
    assert not any("no training text" in event for event in with_text.events)
    with pytest.raises(SettingError, match="need the training text"):
        build_online(old, 9_000, ["uniform", "ngrams"], MemoryConfig())


def test_strangers_are_read_by_their_characters_unless_told_otherwise(
    model: Pretrained, lines: list[Line]
) -> None:
    spelled, plain = (
        evaluate(model, lines[400:], replace(CONFIG, oov=how)) for how in ("characters", "unk")
    )
    assert spelled.settings["oov"] == CONFIG.oov == "characters"
    assert spelled.rows[0].tally.perplexity != plain.rows[0].tally.perplexity
    with pytest.raises(SettingError, match="use characters or unk"):
        replace(CONFIG, oov="letters")
    with pytest.raises(SettingError, match="use characters or unk"):
        build_online(model, 9_000, ["uniform"], MemoryConfig(), "letters")
