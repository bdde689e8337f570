"""The installed command, as a person runs it: train, evaluate, and every way to fail."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path

import pytest

from unbounded.corpus import demo_text


def unbounded(*words: object, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )


def assert_fails(words: Sequence[object], *said: str, status: int = 1) -> None:
    ran = unbounded(*words)
    assert ran.returncode == status, ran.stderr
    assert "Traceback" not in ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line]
    if status == 1:
        assert len(lines) == 1, ran.stderr
        assert lines[0].startswith("Error: ")
    for part in said:
        assert part in ran.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two texts and a tiny model trained on the first."""
    folder = tmp_path_factory.mktemp("e2e")
    lines = [line.text for line in islice(demo_text("sotu", years=range(1950, 1960)), 900)]
    (folder / "train.txt").write_text("\n".join(lines[:700]))
    (folder / "test.txt").write_text("\n".join(lines[700:]))
    ran = unbounded(
        *("train", folder / "train.txt", "--out", folder / "model"),
        *("--units", 24, "--epochs", 2, "--streams", 8, "--threads", 1),
        *("--json", folder / "train.json"),
    )
    assert ran.returncode == 0, ran.stderr
    return folder


def test_training_says_what_it_did(place: Path) -> None:
    figures = json.loads((place / "train.json").read_text())
    assert figures.keys() == {
        "tokens",
        "vocabulary",
        "epoch",
        "valid_perplexity",
        "seconds",
        "words_per_second",
    }
    assert 1 < figures["valid_perplexity"] < figures["vocabulary"]
    assert (place / "model" / "curve.svg").read_text().startswith("<?xml")


def test_evaluation_has_the_shape_of_the_design(place: Path) -> None:
    ran = unbounded("evaluate", place / "model", place / "test.txt", "--json", "-", "--threads", 1)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures.keys() >= {"tokens", "oov_rate", "vocabulary", "rows"}
    names = [row["name"] for row in figures["rows"]]
    assert names == ["static", "unigram", "local", "unbounded", "full"]
    for row in figures["rows"]:
        assert row.keys() >= {
            "name",
            "perplexity",
            "bits_per_character",
            "seconds",
            "seconds_per_token",
            "weights",
        }
        assert sum(row["weights"].values()) == pytest.approx(1)
    static, *others = (row["perplexity"] for row in figures["rows"])
    assert min(others) < static


def test_rows_that_learn_are_there_for_the_asking(place: Path) -> None:
    asked = ["static", "adapted", "dynamic"]
    ran = unbounded(
        *("evaluate", place / "model", place / "test.txt", "--rows", ",".join(asked)),
        *("--json", "-", "--threads", 1),
    )
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)["rows"]
    assert [row["name"] for row in rows] == asked
    assert set(rows[-1]["weights"]) == {"dynamic", "uniform"}


def test_block_1_and_block_512_are_the_same_to_six_digits(place: Path) -> None:
    perplexities = []
    for block in (1, 512):
        ran = unbounded(
            *("evaluate", place / "model", place / "test.txt", "--json", "-", "--threads", 1),
            *("--block", block, "--index", "flat", "--tokens", "2k", "--k", 64, "--window", 300),
        )
        rows = json.loads(ran.stdout)["rows"]
        perplexities.append([row["perplexity"] for row in rows])
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-6)


def test_in_the_open_protocol_nothing_of_the_future_is_known(place: Path, tmp_path: Path) -> None:
    """A text that goes on with words never seen costs the same up to there, word by word."""
    text = (place / "test.txt").read_text()
    (tmp_path / "longer.txt").write_text(text + "\n" + " ".join(f"zorble{n}" for n in range(3_000)))
    words = {}
    for protocol in ("open", "paper"):
        for name, read in (("short", place / "test.txt"), ("long", tmp_path / "longer.txt")):
            ran = unbounded(
                *("evaluate", place / "model", read, "--protocol", protocol, "--threads", 1),
                *("--rows", "static,full", "--k", 64, "--index", "flat"),
                *("--per-token", tmp_path / "w.jsonl", "--json", tmp_path / f"{protocol}.json"),
            )
            assert ran.returncode == 0, ran.stderr
            lines = (tmp_path / "w.jsonl").read_text().splitlines()
            words[protocol, name] = [json.loads(line)["row.full"] for line in lines]
    before = len(words["open", "short"])
    assert words["open", "long"][:before] == pytest.approx(words["open", "short"], abs=1e-4)
    assert words["paper", "long"][:before] != pytest.approx(words["paper", "short"], abs=1e-4)
    figures = json.loads((tmp_path / "open.json").read_text())
    assert figures["protocol"] == "open"
    assert set(figures["rows"][0]["weights"]) == {"static", "spelling"}
    assert all(row["bits_per_character"] > 0 for row in figures["rows"])


def test_the_open_protocol_prints_and_draws_what_it_is(place: Path, tmp_path: Path) -> None:
    text = (place / "test.txt").read_text() + "\n🦜 👩‍👩‍👧‍👦 " + "ab" * 5_000 + "\n"
    (tmp_path / "odd.txt").write_text(text)
    ran = unbounded(
        *("evaluate", place / "model", tmp_path / "odd.txt", "--protocol", "open"),
        *("--rows", "static,full", "--threads", 1, "--report", tmp_path / "open.html"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "open protocol" in ran.stdout
    assert "bits/char" in ran.stdout
    page = (tmp_path / "open.html").read_text()
    assert "weight of spelling" in page
    assert "weight of uniform" not in page


def test_fixed_weights_are_fitted_on_the_first_part_or_on_another_text(place: Path) -> None:
    for more in ([], ["--validate", place / "train.txt"]):
        ran = unbounded(
            *("evaluate", place / "model", place / "test.txt", "--json", "-", "--threads", 1),
            *("--mixture", "fixed", "--rows", "static,unbounded", "--block", 100, *more),
        )
        assert ran.returncode == 0, ran.stderr
        figures = json.loads(ran.stdout)
        assert figures["fitted_on"] > 0
        assert figures["mixture"] == "fixed"


def test_standard_input_is_a_text_too(place: Path) -> None:
    text = (place / "test.txt").read_text()
    common = ("--rows", "static", "--json", "-", "--threads", 1)
    piped = unbounded("evaluate", place / "model", "-", *common, stdin=text)
    named = unbounded("evaluate", place / "model", place / "test.txt", *common)
    assert (
        json.loads(piped.stdout)["rows"][0]["perplexity"]
        == json.loads(named.stdout)["rows"][0]["perplexity"]
    )


def test_the_report_and_the_words_are_written(place: Path) -> None:
    ran = unbounded(
        *("evaluate", place / "model", place / "test.txt", "--threads", 1, "--every", "1k"),
        *("--report", place / "page.html", "--per-token", place / "words.jsonl"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "static + unbounded cache" in ran.stdout
    assert "<svg" in (place / "page.html").read_text()
    first = json.loads((place / "words.jsonl").read_text().splitlines()[0])
    assert first.keys() >= {"word", "new", "expert.static", "row.unbounded"}


def test_an_endless_pipe_is_read_as_far_as_asked(place: Path) -> None:
    told = f"yes it rains again | {sys.executable} -m unbounded evaluate {place}/model - "
    told += "--tokens 50 --rows static --json - --threads 1"
    ran = subprocess.run(["bash", "-c", told], capture_output=True, text=True, timeout=120)
    assert json.loads(ran.stdout)["tokens"] == 50
    told = f"{sys.executable} -m unbounded evaluate {place}/model <(cat {place}/test.txt) "
    told += "--rows static --json - --threads 1"
    ran = subprocess.run(["bash", "-c", told], capture_output=True, text=True, timeout=120)
    assert json.loads(ran.stdout)["tokens"] > 50


def test_a_file_whose_name_is_no_text_is_read(place: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/a\xff.txt"
    Path(os.fsdecode(name)).write_text((place / "test.txt").read_text())
    ran = unbounded(
        *("evaluate", place / "model", os.fsdecode(name), "--rows", "static", "--threads", 1),
        *("--report", tmp_path / "r.html"),
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("units", [1, 3, 5])
def test_few_units_are_trained_too(place: Path, tmp_path: Path, units: int) -> None:
    ran = unbounded(
        *("train", place / "train.txt", "--out", tmp_path / "m", "--units", units),
        *("--epochs", 1, "--threads", 1, "--cutoffs", "100,500"),
    )
    assert ran.returncode == 0, ran.stderr


def test_a_learning_rate_beyond_reason_is_one_line(place: Path, tmp_path: Path) -> None:
    ran = unbounded(
        *("train", place / "train.txt", "--out", tmp_path / "m", "--units", 8, "--epochs", 1),
        *("--learning-rate", 1e9, "--threads", 1),
    )
    assert "Traceback" not in ran.stderr
    assert ran.returncode in (0, 1)


def test_an_interrupted_training_is_resumed_by_name(place: Path, tmp_path: Path) -> None:
    words = ["train", place / "train.txt", "--out", place / "model"]
    assert_fails(words, "already holds a trained model")
    assert_fails(["evaluate", tmp_path, place / "test.txt"], "is not a model")


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


def test_a_missing_text_a_folder_without_text_and_a_missing_model(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert_fails(["evaluate", place / "model", tmp_path / "nowhere.txt"], "nowhere.txt")
    assert_fails(["evaluate", place / "model", tmp_path / "empty"], "empty")
    assert_fails(["evaluate", tmp_path / "nowhere", place / "test.txt"], "does not exist")


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


def test_the_commands_defaults_are_those_of_the_settings() -> None:
    import inspect

    from unbounded.cli.evaluate_command import evaluate
    from unbounded.cli.train_command import train
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
