"""A transformer through the installed commands: evaluated, read into a memory, asked, refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.commands import assert_fails, said
from tests.transformers_small import TEXT, saved

QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transformer")
    saved(folder / "model")
    saved(folder / "other", seed=9)
    (folder / "text.txt").write_text(TEXT * 6, encoding="utf-8")
    return folder


def test_rows_of_a_transformer_are_evaluated(place: Path) -> None:
    rows = "static,knnlm,knnlm-tuned,unbounded,full"
    command = ["evaluate", "model", "text.txt", "--rows", rows, "--first", "text.txt"]
    command += ["--validate", "text.txt", "--json", "out.json", "--report", "page.html"]
    table = said(*command, "--context", 32, "--threads", 1)
    assert "kNN-LM as published" in table
    found = {row["name"]: row for row in json.loads((place / "out.json").read_text())["rows"]}
    assert list(found) == rows.split(",")
    assert found["full"]["perplexity"] < found["static"]["perplexity"] / 10
    assert found["static"]["weights"] == {"static": 1.0}
    assert found["knnlm"]["weights"] == {"static": 0.75, "knn": 0.25}
    assert "Ġ" not in (place / "page.html").read_text(encoding="utf-8")


def test_an_invented_fact_that_was_read_once_is_completed(place: Path) -> None:
    named = ["--model", "model"]
    fact = "The capital of the island of Velorna is Quistal."
    (place / "fact.txt").write_text(f"{fact}\n{TEXT * 4}", encoding="utf-8")
    said("read", "island", "fact.txt", *named)
    greedy = ["--temperature", 0, "--words", 8, *named]
    known = said("complete", "island", "The capital of the island of Velorna is", *greedy)
    assert known.strip().startswith("Quistal")


def test_a_memory_is_read_asked_scored_and_goes_on(place: Path) -> None:
    (place / "few.txt").write_text("the cat's food\n", encoding="utf-8")
    named = ["--model", "model"]
    said("read", "memory", "text.txt", *named)
    predicted = said("predict", "memory", "the cat sat on the", "-n", 3, "--json", "-", *named)
    scored = said("score", "memory", "few.txt", "--words", *named)
    written = said("complete", "memory", "the cat sat on the", "--words", 4, *named)
    read = said("read", "memory", "few.txt", "--surprise", *named)
    found = json.loads(predicted)
    assert found["words"][0]["word"] == "mat"
    assert "the cat sat on the mat" in found["words"][0]["sources"][0]["text"]
    assert found["oov"] < 1e-6
    words = [line.split("\t")[2] for line in scored.splitlines()]
    assert words == ["the", "cat", "'s", "food", "</s>"]
    assert written.strip()
    assert "Ġ" not in written
    assert json.loads(read.splitlines()[0])["text"] == "the cat's food"


def test_what_does_not_belong_together_is_refused_in_one_line(place: Path) -> None:
    said("read", "mine", "text.txt", "--model", "model")
    rows = ["evaluate", "model", "text.txt", "--rows"]
    assert_fails(["predict", "mine", "the", "--model", "other"], "mine belongs to another model")
    assert_fails(["predict", "mine", "the"], "name it yourself: --model")
    assert_fails([*rows, "dynamic"], "no recurrent network")
    assert_fails([*rows, "knnlm"], "--first")
    assert_fails([*rows, "knnlm-tuned", "--first", "text.txt"], "--validate")


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
    (place / "tasks" / "writing.yaml").write_text(
        f"task: writing\n{common}dataset_kwargs:\n  data_files: {{test: {place}/choices.jsonl}}\n"
        'output_type: generate_until\ndoc_to_text: "{{start}}"\ndoc_to_target: "{{good}}"\n'
        'generation_kwargs: {until: ["\\n"], max_gen_toks: 3}\nmetric_list:\n  - metric: bypass\n',
        encoding="utf-8",
    )
    harness = ["unbounded.integrations.lm_eval", "run", "--model", "unbounded", "--model_args"]
    told = [
        "model=model,row=full",
        "--include_path",
        "tasks",
        "--tasks",
        "stream,choice,writing",
        "--log_samples",
    ]
    subprocess.run(
        [sys.executable, "-m", *harness, *told, "--output_path", "found"],
        env={**os.environ, **QUIET, "HF_HOME": str(place / "hf")},
        timeout=300,
        check=True,
    )
    (file,) = (place / "found").rglob("results_*.json")
    found = json.loads(file.read_text(encoding="utf-8"))["results"]
    said("evaluate", "model", "text.txt", "--rows", "full", "--json", "full.json")
    expected = json.loads((place / "full.json").read_text(encoding="utf-8"))
    nats = np.log(expected["rows"][0]["perplexity"]) * expected["tokens"]
    size = len((TEXT * 6).encode())
    got = found["stream"]["bits_per_byte,none"] * np.log(2) * size
    np.testing.assert_allclose(got, nats, rtol=1e-4)
    assert found["choice"]["acc,none"] in (0.0, 1.0)
    (file,) = (place / "found").rglob("samples_writing_*.jsonl")
    sample = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    assert sample["resps"][0][0].startswith(" mat")
