"""A service, asked for words that begin so, and audited as any OpenAI-compatible address is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.small_model import TEXT, small_folder
from tests.serve.running_service import Client, in_process
from unbounded.errors import ModelError
from unbounded.integrations.audit import Audit
from unbounded.integrations.audited import Addressed

WORDS = [word for line in TEXT for word in line.split()][:40]


def test_a_service_predicts_by_prefix_and_stands_an_audit(tmp_path: Path) -> None:
    with in_process(tmp_path / "memories", small_folder()) as service:
        client = Client(service.url)
        client.post("/v1/memories", name="notes")
        client.post("/v1/memories/notes/read", text="\n".join(TEXT))
        found = client.post("/v1/memories/notes/predict", text="the", prefix="zo", n=3)
        assert [one["word"] for one in found["words"]] == ["zorble"]
        assert (
            client.ask("POST", "/v1/memories/notes/predict", {"prefix": "a b"}).status_code == 422
        )

        address = f"{service.url}/v1"
        audit = Audit(lambda: Addressed(address, "notes"), WORDS, samples=12, disjoint=True)
        assert [found.kept for found in audit.run()] == [True] * 5
        with pytest.raises(ModelError, match="gave no echo with logprobs"):
            Addressed(address, "nobody").score(["the", "cat"])


def test_the_command_predicts_by_prefix(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXT), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "unbounded", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout

    said("read", "memory", "text.txt", "--model", str(small_folder()))
    found = said("predict", "memory", "the", "--prefix", "zor", "-n", "3", "--json", "-")
    assert [one["word"] for one in json.loads(found)["words"]] == ["zorble"]


def test_keystrokes_are_a_figure_of_evaluate(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXT), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "unbounded", "evaluate", str(small_folder()), "text.txt"]
    command += ["--rows", "static", "--keystrokes", "30"]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert "keystrokes saved in 30 words, full: " in ran.stdout
    figures = subprocess.run(
        [*command, "--json", "-"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    ).stdout
    saved = json.loads(figures)["keystrokes"]
    assert saved["full"]["words"] == 30
    assert saved["full"]["saved_5"] >= saved["full"]["saved_1"] >= 0
    command[-1:] = ["5"]
    refused = subprocess.run(
        [*command[:5], "-", *command[6:]], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "give --keystrokes a file" in refused.stderr
