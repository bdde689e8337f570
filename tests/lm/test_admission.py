"""No code of a model folder is run, whatever the folder says and whoever writes `yes`."""

import io
import struct
from pathlib import Path

import pytest

from tests.canary import KINDS, MARKER, canary
from unbounded.errors import ModelError
from unbounded.lm import load_model


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_would_run_is_refused_in_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent = io.StringIO("yes\n1\ny\n" * 20)
    monkeypatch.setattr("sys.stdin", consent)
    path = canary(tmp_path / "model", kind)
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert consent.tell() == 0
    assert not (tmp_path / MARKER).exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_settings_nested_too_deep_are_one_line(name: str, tmp_path: Path) -> None:
    path = canary(tmp_path / "model", "pickled weights")
    (path / name).write_text('{"model_type": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("counts", [(3, 1 << 60, 1 << 60), (3, 0, 1, 1 << 40), (3, 0, 1), (9,), ()])
def test_a_gguf_file_of_garbage_is_one_line(counts: tuple[int, ...], tmp_path: Path) -> None:
    """Version, tensors, values, the length of the first name: as far as they are given."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ"[: len(counts) + 1], *counts) + bytes(64))
    with pytest.raises(ModelError, match="cannot be opened as a causal model") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
