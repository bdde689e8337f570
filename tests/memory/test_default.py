"""The default model: trained once where the user's cache is, then found there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lm.test_training import NETWORK
from unbounded.default import default_folder, default_model
from unbounded.errors import ModelError
from unbounded.lm import Progress, TrainingConfig

TINY = TrainingConfig(epochs=1, streams=8)


def test_it_is_trained_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "unbounded" / "default-model-1"
    heard: list[int] = []

    def show(progress: Progress, total: int) -> None:
        heard.append(progress.words)

    first = default_model(show, 4_000, NETWORK, TINY)
    assert heard
    heard.clear()
    again = default_model(show, 4_000, NETWORK, TINY)
    assert heard == []
    assert again.fingerprint == first.fingerprint


def test_without_a_cache_of_ones_own_it_is_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == Path.home() / ".cache" / "unbounded" / "default-model-1"


CHILD = """
from tests.memory.test_default import NETWORK, TINY
from unbounded.default import default_model
heard = []
model = default_model(
    lambda progress, total: heard.append(progress.words),
    4_000, NETWORK, TINY,
    wait=lambda process: print("waits for", process, flush=True),
)
print("trained" if heard else "found", model.fingerprint, flush=True)
"""


def test_of_two_processes_one_trains_and_the_other_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    waits: list[subprocess.Popen[str]] = []

    def show(progress: Progress, total: int) -> None:
        if not waits:
            command = [sys.executable, "-c", CHILD]
            waits.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment
                )
            )
            # Training goes on once the other has come to wait.
            assert waits[0].stdout is not None
            assert waits[0].stdout.readline() == f"waits for {os.getpid()}\n"

    first = default_model(show, 4_000, NETWORK, TINY)
    (other,) = waits
    said, _ = other.communicate(timeout=100)
    assert said == f"found {first.fingerprint}\n"


def test_where_no_cache_can_be_made_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"cannot be made \(.*give --model"):
        default_model(lambda progress, total: None, 4_000, NETWORK, TINY)
