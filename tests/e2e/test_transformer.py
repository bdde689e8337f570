"""A transformer through the installed commands: evaluated, read into a memory, asked, refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.transformers_small import TEXT, saved

QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transformer")
    saved(folder / "model")
    saved(folder / "other", seed=9)
    (folder / "text.txt").write_text(TEXT * 6, encoding="utf-8")
    return folder


def run(place: Path, *command: str, module: str = "unbounded", fails: bool = False) -> str:
    env = {**os.environ, **QUIET, "HF_HOME": str(place / "hf")}
    done = subprocess.run(
        [sys.executable, "-m", module, *command],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == int(fails), done.stderr
    return done.stderr if fails else done.stdout


def test_rows_of_a_transformer_are_evaluated(place: Path) -> None:
    rows = "static,knnlm,knnlm-tuned,unbounded,full"
    command = ["evaluate", "model", "text.txt", "--rows", rows, "--first", "text.txt"]
    command += ["--validate", "text.txt", "--json", "out.json", "--report", "page.html"]
    said = run(place, *command, "--context", "32", "--threads", "1")
    assert "kNN-LM as published" in said
    found = {row["name"]: row for row in json.loads((place / "out.json").read_text())["rows"]}
    assert list(found) == rows.split(",")
    assert found["full"]["perplexity"] < found["static"]["perplexity"] / 10
    assert found["static"]["weights"] == {"static": 1.0}
    assert found["knnlm"]["weights"] == {"static": 0.75, "knn": 0.25}
    assert "Ġ" not in (place / "page.html").read_text(encoding="utf-8")


def test_a_memory_is_read_asked_scored_and_goes_on(place: Path) -> None:
    run(place, "read", "memory", "text.txt", "--model", "model")
    found = json.loads(
        run(place, "predict", "memory", "the cat sat on the", "-n", "3", "--json", "-")
    )
    assert found["words"][0]["word"] == "mat"
    assert "the cat sat on the mat" in found["words"][0]["sources"][0]["text"]
    assert found["stranger"] < 1e-6
    (place / "few.txt").write_text("the cat's food\n", encoding="utf-8")
    lines = run(place, "score", "memory", "few.txt", "--words").splitlines()
    assert [line.split("\t")[2] for line in lines] == ["the", "cat", "'s", "food", "</s>"]
    written = run(place, "complete", "memory", "the cat sat on the", "--words", "4")
    assert written.strip()
    assert "Ġ" not in written
    said = run(place, "read", "memory", "few.txt", "--surprise")
    assert said.splitlines()[0].endswith("the cat's food")


def test_a_memory_of_another_model_is_refused_in_one_line(place: Path) -> None:
    run(place, "read", "mine", "text.txt", "--model", "model")
    said = run(place, "predict", "mine", "the", "--model", "other", fails=True)
    assert said.startswith("Error: mine belongs to another model")
    assert len(said.splitlines()) == 1
    said = run(place, "evaluate", "model", "text.txt", "--rows", "dynamic", fails=True)
    assert "no recurrent network of ours" in said
    said = run(place, "evaluate", "model", "text.txt", "--rows", "knnlm", fails=True)
    assert "--first" in said


def test_a_task_of_local_files_runs_through_the_harness(place: Path) -> None:
    """Its rolling log-likelihood is that of `evaluate`."""
    documents = "".join(json.dumps({"text": f"{line}\n"}) + "\n" for line in TEXT.splitlines() * 6)
    (place / "documents.jsonl").write_text(documents, encoding="utf-8")
    (place / "tasks").mkdir()
    choices = [{"start": "the cat sat on the", "good": " mat", "bad": " food"}] * 3
    lines = "".join(json.dumps(choice) + "\n" for choice in choices)
    (place / "choices.jsonl").write_text(lines, encoding="utf-8")
    common = "dataset_path: json\ntest_split: test\n"
    (place / "tasks" / "stream.yaml").write_text(
        f"task: stream\n{common}dataset_kwargs:\n  data_files: {{test: {place}/documents.jsonl}}\n"
        'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{text}}"\n'
        "metric_list:\n  - metric: byte_perplexity\n  - metric: bits_per_byte\n",
        encoding="utf-8",
    )
    (place / "tasks" / "choice.yaml").write_text(
        f"task: choice\n{common}dataset_kwargs:\n  data_files: {{test: {place}/choices.jsonl}}\n"
        'output_type: multiple_choice\ndoc_to_text: "{{start}}"\ndoc_to_target: 0\n'
        'doc_to_choice: ["{{good}}", "{{bad}}"]\ntarget_delimiter: ""\n'
        "metric_list:\n  - metric: acc\n",
        encoding="utf-8",
    )
    run(
        place,
        *("run", "--model", "unbounded", "--model_args", "model=model,row=full"),
        *("--include_path", "tasks", "--tasks", "stream,choice", "--output_path", "found"),
        module="unbounded.harness",
    )
    (file,) = (place / "found").rglob("results_*.json")
    found = json.loads(file.read_text(encoding="utf-8"))["results"]
    run(place, "evaluate", "model", "text.txt", "--rows", "full", "--json", "full.json")
    expected = json.loads((place / "full.json").read_text(encoding="utf-8"))
    nats = np.log(expected["rows"][0]["perplexity"]) * expected["tokens"]
    size = len((TEXT * 6).encode())
    got = found["stream"]["bits_per_byte,none"] * np.log(2) * size
    np.testing.assert_allclose(got, nats, rtol=1e-4)
    assert found["choice"]["acc,none"] in (0.0, 1.0)
