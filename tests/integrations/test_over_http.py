"""A service, asked for words that begin so, and audited as any OpenAI-compatible address is."""

import json
from pathlib import Path

import pytest

from tests.commands import assert_fails, said
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


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(TEXT), encoding="utf-8")
    return tmp_path / "text.txt"


def test_the_command_predicts_by_prefix(text: Path, tmp_path: Path) -> None:
    said("read", tmp_path / "memory", text, "--model", small_folder())
    found = said("predict", tmp_path / "memory", "the", "--prefix", "zor", "-n", 3, "--json", "-")
    assert [one["word"] for one in json.loads(found)["words"]] == ["zorble"]


def test_keystrokes_are_a_figure_of_evaluate(text: Path) -> None:
    evaluate, options = ("evaluate", small_folder()), ("--rows", "static", "--keystrokes", 30)
    assert "keystrokes saved in 30 words, full: " in said(*evaluate, text, *options)
    saved = json.loads(said(*evaluate, text, *options, "--json", "-"))["keystrokes"]
    assert saved["full"]["words"] == 30
    assert saved["full"]["saved_5"] >= saved["full"]["saved_1"] >= 0
    assert_fails([*evaluate, "-", *options], "give --keystrokes a file")
