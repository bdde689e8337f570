"""Which model a service has: that of the memories there, or one that somebody names."""

from pathlib import Path

import pytest

from tests.serve.conftest import Run
from tests.serve.running_service import Client, in_thread
from tests.transformers_small import pretrained, saved
from unbounded.errors import StoreError
from unbounded.lm import Pretrained, load_model
from unbounded.memory import open as open_memory
from unbounded.serve.app import recorded_model


def test_memories_of_a_transformer_say_which_model_to_give(tmp_path: Path, run: Run) -> None:
    folder = saved(tmp_path / "pieces")
    open_memory(tmp_path / "s" / "notes", load_model(folder)).close()
    status, _, said = run("serve", tmp_path / "s", "--port", 0)
    assert status == 1
    assert f"belongs to '{folder}', a model of transformers" in said
    assert "--model" in said


def test_a_model_of_ours_is_taken_wherever_one_memory_has_it(
    tmp_path: Path, model_folder: Path, model: Pretrained
) -> None:
    assert recorded_model(tmp_path) is None
    open_memory(tmp_path / "a", pretrained()).close()
    with pytest.raises(StoreError, match="give the model"):
        recorded_model(tmp_path)
    open_memory(tmp_path / "b", model).close()
    assert recorded_model(tmp_path) == model_folder


def test_a_memory_of_another_model_is_refused_by_what_it_is(
    tmp_path: Path, model: Pretrained
) -> None:
    open_memory(tmp_path / "theirs", pretrained()).close()
    with in_thread(tmp_path, model) as url:
        client = Client(url)
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/read", {"text": "x"}),
            ("POST", "/predict", {"text": "x"}),
        ):
            path = f"/v1/memories/theirs{path}"
            assert client.refused(409, method, path, body) == "other_model"
        client.make("ours", "The zorble ate the grass.")
