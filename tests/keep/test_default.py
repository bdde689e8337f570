"""The default model: trained once where the user's cache is, then found there."""

from pathlib import Path

import pytest

from tests.lm.test_training import NETWORK
from unbounded.default import default_folder, default_model
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
