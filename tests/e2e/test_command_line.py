"""Commands as a person runs them: train, evaluate, and every way to fail."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.commands import assert_fails, said, unbounded
from unbounded.demo import demo_text

ONE = ("--threads", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two texts and a tiny model trained on the first."""
    folder = tmp_path_factory.mktemp("e2e")
    lines = [line.text for line in islice(demo_text("sotu", years=range(1950, 1960)), 900)]
    (folder / "train.txt").write_text("\n".join(lines[:700]))
    (folder / "test.txt").write_text("\n".join(lines[700:]))
    said(
        *("train", folder / "train.txt", "--out", folder / "model", *ONE),
        *("--units", 24, "--epochs", 2, "--streams", 8, "--json", folder / "train.json"),
    )
    return folder


def test_training_says_what_it_did(place: Path) -> None:
    figures = json.loads((place / "train.json").read_text())
    about = {"tokens", "vocabulary", "epoch", "valid_perplexity", "seconds", "words_per_second"}
    assert figures.keys() == about
    assert 1 < figures["valid_perplexity"] < figures["vocabulary"]
    assert (place / "model" / "curve.svg").read_text().startswith("<?xml")


def evaluated(place: Path, text: object, *options: object, stdin: str = "") -> Any:
    """The figures of an evaluation."""
    return json.loads(
        said("evaluate", place / "model", text, *options, *ONE, "--json", "-", stdin=stdin)
    )


def test_evaluation_has_the_shape_of_the_design(place: Path) -> None:
    figures = evaluated(place, place / "test.txt")
    assert figures.keys() >= {"tokens", "oov_rate", "vocabulary", "rows"}
    names = [row["name"] for row in figures["rows"]]
    assert names == ["static", "unigram", "local", "unbounded", "full"]
    keys = {"name", "perplexity", "bits_per_character", "seconds", "seconds_per_token", "weights"}
    for row in figures["rows"]:
        assert row.keys() >= keys
        assert sum(row["weights"].values()) == pytest.approx(1)
    static, *others = (row["perplexity"] for row in figures["rows"])
    assert min(others) < static


def test_rows_that_learn_are_there_for_the_asking(place: Path) -> None:
    asked = ["static", "adapted", "dynamic"]
    rows = evaluated(place, place / "test.txt", "--rows", ",".join(asked))["rows"]
    assert [row["name"] for row in rows] == asked
    assert set(rows[-1]["weights"]) == {"dynamic", "uniform"}


def test_in_the_open_protocol_nothing_of_the_future_is_known(place: Path, tmp_path: Path) -> None:
    """A text that goes on with words never seen costs the same up to there, word by word."""
    text = (place / "test.txt").read_text()
    (tmp_path / "longer.txt").write_text(text + "\n" + " ".join(f"zorble{n}" for n in range(3_000)))
    words, figures = {}, {}
    for protocol in ("open", "paper"):
        for name, read in (("short", place / "test.txt"), ("long", tmp_path / "longer.txt")):
            figures[protocol] = evaluated(
                *(place, read, "--protocol", protocol, "--rows", "static,full", "--k", 64),
                *("--index", "flat", "--per-token", tmp_path / "w.jsonl"),
            )
            lines = (tmp_path / "w.jsonl").read_text().splitlines()
            words[protocol, name] = [json.loads(line)["row.full"] for line in lines]
    before = len(words["open", "short"])
    assert words["open", "long"][:before] == pytest.approx(words["open", "short"], abs=1e-4)
    assert words["paper", "long"][:before] != pytest.approx(words["paper", "short"], abs=1e-4)
    assert figures["open"]["protocol"] == "open"
    assert set(figures["open"]["rows"][0]["weights"]) == {"static", "spelling"}
    assert all(row["bits_per_character"] > 0 for row in figures["open"]["rows"])


def test_the_open_protocol_prints_and_draws_what_it_is(place: Path, tmp_path: Path) -> None:
    text = (place / "test.txt").read_text() + "\n🦜 👩‍👩‍👧‍👦 " + "ab" * 5_000 + "\n"
    (tmp_path / "odd.txt").write_text(text)
    shown = said(
        *("evaluate", place / "model", tmp_path / "odd.txt", "--protocol", "open", *ONE),
        *("--rows", "static,full", "--report", tmp_path / "open.html"),
    )
    assert "open protocol" in shown
    assert "bits/char" in shown
    page = (tmp_path / "open.html").read_text()
    assert '<tr class="spelling"><th scope=row>spelling</th>' in page
    assert "weight of uniform" not in page


@pytest.mark.parametrize("where", ["first part", "another text"])
def test_fixed_weights_are_fitted(place: Path, where: str) -> None:
    more = ["--validate", place / "train.txt"] if where == "another text" else []
    options = ("--mixture", "fixed", "--rows", "static,unbounded", "--block", 100, *more)
    figures = evaluated(place, place / "test.txt", *options)
    assert figures["fitted_on"] > 0
    assert figures["mixture"] == "fixed"


def test_standard_input_is_a_text_too(place: Path) -> None:
    text = (place / "test.txt").read_text()
    piped = evaluated(place, "-", "--rows", "static", stdin=text)
    named = evaluated(place, place / "test.txt", "--rows", "static")
    assert piped["rows"][0]["perplexity"] == named["rows"][0]["perplexity"]


def test_the_report_and_the_words_are_written(place: Path, tmp_path: Path) -> None:
    """Of a file whose name is no text."""
    name = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.txt"))
    name.write_text((place / "test.txt").read_text())
    shown = said(
        *("evaluate", place / "model", name, *ONE),
        *("--report", place / "page.html", "--per-token", place / "words.jsonl"),
    )
    assert "static + unbounded cache" in shown
    assert "<svg" in (place / "page.html").read_text()
    first = json.loads((place / "words.jsonl").read_text().splitlines()[0])
    assert first.keys() >= {"word", "new", "expert.static", "row.unbounded"}


def test_an_endless_pipe_is_read_as_far_as_asked(place: Path) -> None:
    command = f"{sys.executable} -m unbounded evaluate {place}/model"
    for told, least, most in (
        (f"yes it rains again | {command} - --tokens 50", 50, 50),
        (f"{command} <(cat {place}/test.txt)", 51, 1_000_000),
    ):
        whole = f"{told} --rows static --json - --threads 1"
        ran = subprocess.run(["bash", "-c", whole], capture_output=True, text=True, timeout=120)
        assert least <= json.loads(ran.stdout)["tokens"] <= most


def test_text_that_is_tokenized_already_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "ptb.txt").write_text(
        "the <unk> fell N % to $ N\nMr. <unk> did n't say </s>\n" * 40
    )
    said(
        *("train", tmp_path / "ptb.txt", "--out", tmp_path / "model", "--tokenizer", "none"),
        *("--units", 8, "--epochs", 1, "--streams", 4, *ONE),
    )
    words = (tmp_path / "model" / "vocabulary.txt").read_text().split()
    assert {"<unk>", "N", "%", "Mr.", "n't", "/s>"} <= set(words)
    found = evaluated(tmp_path, tmp_path / "ptb.txt", "--rows", "static")
    assert found["tokens"] == 40 * (9 + 8)
    assert found["oov_rate"] == 0
    more = ("--out", tmp_path / "x", "--tokenizer")
    assert_fails(["train", tmp_path / "ptb.txt", *more, "magic"], "europarl or none")
    assert_fails(["train", tmp_path / "ptb.txt", *more, "none", "--keep-case"], "--keep-case")


@pytest.mark.parametrize("verb", ["train", "read"])
def test_ctrl_c_says_what_was_kept_and_how_to_go_on(place: Path, tmp_path: Path, verb: str) -> None:
    words = {
        "train": ["train", place / "train.txt", "--out", tmp_path / "m", "--epochs", 99],
        "read": ["read", tmp_path / "n", "-", "--model", place / "model", "--surprise"],
    }[verb]
    process = subprocess.Popen(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    if verb == "read":
        process.stdin.write("It rains.\n")
        process.stdin.flush()
        process.stdout.readline()
    else:
        process.stderr.readline()  # what it trains on
        process.stderr.readline()  # an epoch
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    last = err.strip().splitlines()[-1]
    assert last.startswith("stopped: ")
    assert ("--resume" if verb == "train" else "acknowledged") in last


@pytest.mark.parametrize("units", [1, 3, 5])
def test_few_units_are_trained_too(place: Path, tmp_path: Path, units: int) -> None:
    said(
        *("train", place / "train.txt", "--out", tmp_path / "m", "--units", units),
        *("--epochs", 1, *ONE, "--cutoffs", "100,500"),
    )


@pytest.mark.filterwarnings("ignore:constrained_layout")
def test_a_learning_rate_beyond_reason_is_one_line(place: Path, tmp_path: Path) -> None:
    ran = unbounded(
        *("train", place / "train.txt", "--out", tmp_path / "m", "--units", 8, "--epochs", 1),
        *("--learning-rate", 1e9, "--threads", 1),
    )
    assert "Traceback" not in ran.stderr
    assert ran.returncode in (0, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no text"),
        (b"\x00\x01\x02" * 900, "not text"),
        ("é".encode("utf-16"), "UTF-16"),
        (b"\x1f\x8b\x08\x00truncated", "x.txt"),
    ],
    ids=["empty", "binary", "utf-16", "truncated gzip"],
)
def test_bad_text_is_one_line(place: Path, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    assert_fails(["evaluate", place / "model", tmp_path / "x.txt"], said)
    assert_fails(["train", tmp_path / "x.txt", "--out", tmp_path / "m"], said)
    assert not (tmp_path / "m").exists()


def test_what_is_not_there_or_there_already_is_one_line(place: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_fails(["evaluate", place / "model", tmp_path / "nowhere.txt"], "nowhere.txt")
    assert_fails(["evaluate", place / "model", tmp_path / "empty"], "empty")
    assert_fails(["evaluate", tmp_path / "nowhere", place / "test.txt"], "does not exist")
    assert_fails(["evaluate", tmp_path, place / "test.txt"], "is not a model")
    train = ["train", place / "train.txt", "--out", place / "model"]
    assert_fails(train, "already holds a trained model")


@pytest.mark.parametrize(
    "options",
    [
        ["--rows", "static,magic"],
        ["--index", "magic"],
        ["--mixture", "magic"],
        ["--protocol", "magic"],
        ["--kernel", "magic"],
        ["--sharpness", "-1"],
        ["--validate", "x.txt"],
        ["--json", "."],
        ["--report", "no/such/folder/x.html"],
    ],
)
def test_settings_that_mean_nothing_are_one_line(place: Path, options: list[str]) -> None:
    assert_fails(["evaluate", place / "model", place / "test.txt", *options], "Error")


@pytest.mark.parametrize("options", [["--tokens", "many"], ["--block", "0"], ["--nonsense"]])
def test_wrong_usage_is_exit_status_2(place: Path, options: list[str]) -> None:
    assert_fails(["evaluate", place / "model", place / "test.txt", *options], status=2)


def test_a_disk_that_takes_no_more_is_one_line_and_leaves_nothing(place: Path) -> None:
    """A limit on the size of files stands in for a full disk: the write fails halfway."""
    limited = f"ulimit -f 4; exec {sys.executable} -m unbounded "
    told = f"train {place}/train.txt --out {place}/full --units 24 --epochs 1 --streams 8"
    ran = subprocess.run(["bash", "-c", limited + told], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("Error: ")
    assert "too large" in ran.stderr
    assert list((place / "full").iterdir()) == []
    told = f"evaluate {place}/model {place}/test.txt --rows static --per-token {place}/full.jsonl"
    ran = subprocess.run(["bash", "-c", limited + told], capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1].startswith(f"Error: {place}/full.jsonl: File too large; ")


def test_the_commands_defaults_are_those_of_the_settings() -> None:
    import inspect

    from unbounded.cli.model_command import evaluate, train
    from unbounded.evaluation.evaluate import EvaluationConfig
    from unbounded.lm import NetworkConfig, TrainingConfig
    from unbounded.presets import MemoryConfig

    said = inspect.signature(train).parameters
    for settings in (TrainingConfig(), NetworkConfig()):
        for field in fields(settings):
            if field.name != "cutoffs":
                assert said[field.name].default == getattr(settings, field.name), field.name
    assert said["cutoffs"].default == "2k,10k,40k"
    asked = inspect.signature(evaluate).parameters
    assert asked["index"].default == MemoryConfig().index
    assert asked["sharpness"].default == MemoryConfig().kernel
    assert asked["local_sharpness"].default == MemoryConfig().local_kernel
    assert asked["normalize"].default == MemoryConfig().normalize
    assert asked["mixture"].default == EvaluationConfig().mixture
    assert asked["protocol"].default == EvaluationConfig().protocol
    assert asked["rows"].default == ",".join(EvaluationConfig().rows)
