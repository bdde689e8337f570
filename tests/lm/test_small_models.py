"""A model in a few megabytes: weights in 8 bits, a packed text, a limited vocabulary."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import zstandard

from experiments.default_model import small
from tests.lm.test_training import NETWORK, cycle, run
from unbounded.corpus import SENTENCE_END, Sentence, training_text
from unbounded.errors import ModelError
from unbounded.lm import load_model
from unbounded.lm.model_folder import (
    CONFIG,
    TEXT,
    WEIGHTS,
    checksum,
    in_eight_bits,
    in_full,
    read_arrays,
    read_words,
    write_arrays,
    write_words,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "whole"
    run(folder, cycle(3_000))
    return folder


def test_a_weight_is_at_most_half_a_step_from_what_it_was() -> None:
    weights = np.random.default_rng(1).normal(size=(50, 30)).astype(np.float32)
    found = in_full(in_eight_bits({"w": weights}))["w"]
    steps = np.abs(weights).max(axis=1, keepdims=True) / 127
    assert (np.abs(found - weights) <= steps * 0.5001).all()
    assert found.dtype == np.float32


def test_a_model_in_eight_bits_says_nearly_the_same(whole: Path, tmp_path: Path) -> None:
    model = load_model(whole)
    small(model, whole, tmp_path / "small")
    packed = load_model(tmp_path / "small")
    assert packed.fingerprint != model.fingerprint
    assert packed.text is not None
    np.testing.assert_array_equal(packed.text, model.text)
    size = {folder: (folder / WEIGHTS).stat().st_size for folder in (whole, tmp_path / "small")}
    assert size[tmp_path / "small"] < 0.5 * size[whole]
    nats = []
    for one in (model, packed):
        first, state = one.lm.start()
        hidden = np.concatenate([first, one.lm.advance(state, packed.text[:400])[0]])[:-1]
        nats.append(-np.log(one.lm.prob(hidden, packed.text[:400])).mean())
    assert math.isclose(*nats, rel_tol=0.02)


def test_a_scale_that_does_not_fit_is_a_damaged_model(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    small(load_model(whole), whole, folder)
    arrays = read_arrays(folder / WEIGHTS)[0]
    arrays["embedding.scale"] = arrays["embedding.scale"][:-1]
    write_arrays(folder / WEIGHTS, arrays, {})
    config = json.loads((folder / CONFIG).read_text())
    config["checksums"][WEIGHTS] = checksum(folder / WEIGHTS)
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"damaged model \(embedding and its scales do not fit"):
        load_model(folder)


def test_packed_words_come_back_and_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path, words = tmp_path / TEXT, np.random.default_rng(1).integers(0, 40_000, 5_000)
    write_words(path, words, b"vocabulary", packed=True)
    np.testing.assert_array_equal(read_words(path, b"vocabulary"), words)
    with pytest.raises(ValueError, match="not the text of this vocabulary"):
        read_words(path, b"another")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 24))
    write_arrays(path, {"packed": np.frombuffer(bomb, np.uint8)}, {"checksum": "0"})
    with pytest.raises(ValueError, match="more than any text does"):
        read_words(path, b"vocabulary")
    write_arrays(path, {"packed": np.frombuffer(b"no frame", np.uint8)}, {"checksum": "0"})
    with pytest.raises(ValueError, match="cannot be unpacked"):
        read_words(path, b"vocabulary")


def test_words_beyond_a_limited_vocabulary_are_read_and_never_predicted(tmp_path: Path) -> None:
    words = [f"w{n % 11}" if n % 97 else f"rare{n}" for n in range(3_000)]
    sentence = [Sentence((*words, SENTENCE_END), "cycle", 1)]
    text = training_text(sentence, 2_800, vocabulary_size=11)
    assert text.vocabulary.base_size == 12  # the sentence end is always there
    assert (text.words == 12).sum() == sum(word.startswith("rare") for word in words[:2_800])
    curve = run(tmp_path / "model", text)
    assert math.isfinite(curve[-1].train_perplexity)
    model = load_model(tmp_path / "model")
    assert model.text is not None
    assert model.text.max() < 12
    assert NETWORK.units == model.lm.width
    np.testing.assert_allclose(model.lm.dense(model.lm.start()[0]).sum(), 1, rtol=1e-6)
