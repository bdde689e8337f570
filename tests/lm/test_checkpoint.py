import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.lm.test_training import CONFIG as TRAINED
from tests.lm.test_training import NETWORK, cycle, run
from unbounded.corpus import TrainingText
from unbounded.demo import trained_model
from unbounded.errors import ModelError
from unbounded.lm import Pretrained, load_model
from unbounded.lm.model_folder import CONFIG, CURVE, TEXT, VOCABULARY, WEIGHTS


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models") / "model"
    run(folder, cycle(1_500))
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def lay(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_model_folder_holds_arrays_json_and_text_only_and_the_words_of_its_training(
    trained: dict[str, bytes], tmp_path: Path
) -> None:
    assert trained.keys() == {CONFIG, WEIGHTS, VOCABULARY, CURVE, TEXT}
    json.loads(trained[CONFIG])
    trained[VOCABULARY].decode()
    model = load_model(lay(trained, tmp_path / "whole"))
    np.testing.assert_array_equal(model.text, cycle(1_500).words)


def truncated(name: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: files | {name: files[name][: len(files[name]) // 2]}


def flipped(name: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    def flip(files: dict[str, bytes]) -> dict[str, bytes]:
        content = bytearray(files[name])
        content[len(content) // 2] ^= 4
        return files | {name: bytes(content)}

    return flip


def without(name: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: {key: value for key, value in files.items() if key != name}


def configured(**changes: object) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: files | {CONFIG: json.dumps(json.loads(files[CONFIG]) | changes).encode()}


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (truncated(WEIGHTS), "damaged"),
        (flipped(WEIGHTS), "checksum"),
        (without(WEIGHTS), "damaged"),
        (truncated(VOCABULARY), "damaged"),
        (flipped(VOCABULARY), "damaged"),
        (without(VOCABULARY), "damaged"),
        (truncated(CONFIG), "not a model's configuration"),
        (without(CONFIG), "not a model"),
        (configured(format=99), "format 99; this version reads 1"),
        (configured(network={}), "damaged"),
        (configured(tokenizer={"rules": "martian"}), "damaged"),
        (lambda files: files | {WEIGHTS: b"\x80\x04pickle"}, "damaged"),
        (lambda files: files | {CONFIG: b"[]"}, "not a model's configuration"),
        # 128 terabytes, if they were allocated before they are compared with what is there.
        (configured(network={"cell": "lstm", "units": 2_000_000, "cutoffs": [9]}), "of shape"),
        (lambda files: files | {CONFIG: b"[" * 100_000}, "not a model's configuration"),
        (lambda files: files | {CURVE: b"[" * 100_000}, "nested too deep"),
        (truncated(CURVE), "damaged"),
        (truncated(TEXT), "damaged"),
        (flipped(TEXT), "not the text of this vocabulary"),
    ],
)
def test_harm_to_any_file_is_one_clear_line(
    trained: dict[str, bytes],
    tmp_path: Path,
    harm: Callable[[dict[str, bytes]], dict[str, bytes]],
    said: str,
) -> None:
    folder = lay(harm(trained), tmp_path / "harmed")
    with pytest.raises(ModelError, match=said) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_missing_or_foreign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="unbounded train"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("not a model")
    with pytest.raises(ModelError, match="is not a model"):
        load_model(tmp_path)


def opened(folder: Path, text: TrainingText) -> Pretrained:
    """The model as jobs open it; this one is not to be trained again."""

    def no_training(*_: object) -> None:
        raise AssertionError("it was trained already")

    return trained_model(folder, lambda _: text, NETWORK, TRAINED, no_training)


def test_the_text_may_be_left_out_and_is_put_back_by_who_knows_it(
    trained: dict[str, bytes], tmp_path: Path
) -> None:
    folder = lay(without(TEXT)(trained), tmp_path / "old")
    assert load_model(folder).text is None
    with pytest.raises(ModelError, match="trained on another text"):
        opened(folder, cycle(2_000))
    assert not (folder / TEXT).exists()
    np.testing.assert_array_equal(opened(folder, cycle(1_500)).text, cycle(1_500).words)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == trained
