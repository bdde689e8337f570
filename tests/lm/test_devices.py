"""A network on another device: used where it lies, and asked for before the work."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.commands import assert_fails
from tests.lm.second_device import second_device
from tests.lm.test_training import CONFIG, NETWORK, cycle
from tests.transformers_small import network, saved
from unbounded.errors import ModelError, SettingError
from unbounded.lm import TransformerConfig, TransformerModel, load_model
from unbounded.lm.devices import device_named
from unbounded.lm.saved_training import resume_training, save_training
from unbounded.lm.training import Trainer

WORDS = np.random.default_rng(1).integers(0, 40, 30)


def test_mixing_devices_is_an_error_here_too() -> None:
    with second_device() as device:
        there = torch.ones(2, 2).to(device)
        with pytest.raises(RuntimeError, match="two devices"):
            there @ torch.ones(2, 2)
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()
        assert (there @ there).cpu().tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("key", ["output", "feedforward"])
def test_a_transformer_says_there_what_it_says_here(key: str) -> None:
    config = TransformerConfig(key=key)
    here = TransformerModel(network("llama", 40), 7, config)
    hidden = here.advance(here.start()[1], WORDS)[0]
    with second_device() as device:
        there = TransformerModel(network("llama", 40).to(device), 7, config)
        found = there.advance(there.start()[1], WORDS)[0]
        np.testing.assert_allclose(found, hidden, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(there.prob(found, WORDS), here.prob(hidden, WORDS), rtol=1e-3)
        np.testing.assert_allclose(there.dense(found), here.dense(hidden), rtol=1e-3)
        ours, theirs = here.shortlist(hidden, WORDS), there.shortlist(found, WORDS)
        np.testing.assert_allclose(theirs.prob, ours.prob, rtol=1e-3)
        np.testing.assert_array_equal(there.first_weight, here.first_weight)


def test_training_there_takes_the_same_steps_and_goes_on_here(tmp_path: Path) -> None:
    text, config = cycle(1_500), replace(CONFIG, epochs=1)
    valid = np.where(text.valid < 0, text.vocabulary.base_size, text.valid)

    def trained(device: torch.device) -> Trainer:
        trainer = Trainer(text.words, text.counts, 0, NETWORK, config, device)
        list(trainer.run(valid))
        return trainer

    here = trained(torch.device("cpu"))
    with second_device() as device:
        there = trained(device)
        assert {weight.device for weight in there.weights().values()} == {device}
        save_training(tmp_path, there, text)
        weights = {name: weight.cpu() for name, weight in there.weights().items()}
    # Other devices have another Adagrad, which rounds otherwise.
    assert there.best_valid == pytest.approx(here.best_valid, rel=0.02)
    moved = Trainer(text.words, text.counts, 0, NETWORK, config)
    assert resume_training(tmp_path, moved, text)
    for name, weight in moved.weights().items():
        np.testing.assert_array_equal(weight, weights[name])


def test_a_device_that_is_not_there_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="device 'gpu' is unknown; use cpu, cuda or mps"):
        device_named("gpu")
    with pytest.raises(SettingError, match="device 'cuda:99' is not there"):
        device_named("cuda:99")
    train = ["train", "nothing.txt", "--out", tmp_path / "model", "--device", "cuda:99"]
    assert_fails(train, "device 'cuda:99' is not there", "leave out --device")
    assert not (tmp_path / "model").exists()
    read = ["read", tmp_path / "notes", "-", "--device", "cuda:99"]
    assert_fails([*read, "--model", saved(tmp_path / "gpt2")], "device 'cuda:99' is not there")
    assert not (tmp_path / "notes").exists()


def test_a_recurrent_model_reads_on_the_processor() -> None:
    with pytest.raises(ModelError, match="no device; leave them out"):
        load_model("default", TransformerConfig(device="cuda"))


def test_a_device_that_there_is_not_is_named_where_torch_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SettingError, match="'tpu' is unknown"):
        device_named("tpu")
