import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unbounded.corpus import Sentence, Tokenizer, TrainingText, training_text
from unbounded.errors import ModelError, SettingError, TrainingError
from unbounded.lm import (
    AdaptedConfig,
    AdapterConfig,
    DynamicConfig,
    DynamicHeadConfig,
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    load_model,
    train_model,
)
from unbounded.lm.model_folder import TRAINING
from unbounded.lm.saved_training import resume_training, save_training
from unbounded.lm.training import Trainer

NETWORK = NetworkConfig(units=16, cutoffs=(8,))
CONFIG = TrainingConfig(epochs=3, streams=4, bptt=5, dropout=0.1, unknown=0.3, patience=9)


def cycle(length: int) -> TrainingText:
    """A text that a network can learn by heart, with rare words in it."""
    words = [f"w{n % 11}" if n % 97 else f"rare{n}" for n in range(length)]
    return training_text([Sentence(tuple(words), "cycle", 1)], length - 200)


def trainer_of(text: TrainingText, config: TrainingConfig = CONFIG) -> Trainer:
    return Trainer(text.words, text.counts, 0, NETWORK, config)


def run(
    folder: Path, text: TrainingText, config: TrainingConfig = CONFIG, **more: Any
) -> list[Progress]:
    return list(train_model(folder, text, Tokenizer(), NETWORK, config, **more))


def test_it_learns_a_text_by_heart(tmp_path: Path) -> None:
    curve = run(tmp_path / "m", cycle(3_000), replace(CONFIG, epochs=8))
    assert curve[-1].valid_perplexity is not None
    assert curve[-1].valid_perplexity < 2  # measured 1.2; guessing alone would be 11


def test_the_embedding_moves_only_where_a_word_was_read() -> None:
    text = cycle(3_000)
    trainer = trainer_of(text)
    before = trainer.embedding.clone()
    batch = next(iter(trainer.batches.after(0)))
    trainer._learn(batch)
    moved = (trainer.embedding != before).any(dim=1).nonzero()[:, 0].tolist()
    assert set(moved) <= {*batch.inputs.flatten().tolist(), len(text.counts)}
    assert moved


def test_one_step_is_adagrad_as_torch_does_it() -> None:
    """The hand-made update of the embedding against torch's Adagrad with sparse gradients."""
    text = cycle(1_000)
    config = replace(CONFIG, dropout=0.0, unknown=0.0, clip=1e9)
    ours, theirs = trainer_of(text, config), trainer_of(text, config)
    weight = torch.nn.Parameter(theirs.embedding.clone())
    adagrad = torch.optim.Adagrad([weight], lr=config.learning_rate)
    for batch in list(ours.batches.after(0))[:5]:
        ours._learn(batch)
        vectors = torch.nn.functional.embedding(batch.inputs, weight)
        hidden, state = theirs.encoder(vectors, theirs.state)
        theirs.state = tuple(part.detach() for part in state)
        theirs.head(hidden.flatten(0, 1), batch.targets.flatten()).loss.backward()
        adagrad.step()
        theirs.adagrad.step()
        adagrad.zero_grad()
        theirs.adagrad.zero_grad()
    # Words that were not read keep gradient zero, so that Adagrad leaves them alone too.
    torch.testing.assert_close(ours.embedding, weight.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stop_after", [1, 2, 5])
def test_a_resumed_run_ends_where_the_uninterrupted_one_ends(
    tmp_path: Path, stop_after: int
) -> None:
    text = cycle(3_000)
    run(tmp_path / "whole", text)
    interrupted = tmp_path / "interrupted"
    training = train_model(interrupted, text, Tokenizer(), NETWORK, CONFIG, save_every=0.0)
    for _ in range(stop_after):
        next(training)
    training.close()
    assert (interrupted / TRAINING).exists()
    run(interrupted, text, resume=True)
    assert_same(load_model(tmp_path / "whole"), load_model(interrupted))


def assert_same(one: Pretrained, other: Pretrained) -> None:
    words = np.arange(one.lm.base_size)
    hidden, state = one.lm.start()
    np.testing.assert_array_equal(hidden, other.lm.start()[0])
    np.testing.assert_array_equal(
        one.lm.advance(state, words)[0], other.lm.advance(state, words)[0]
    )
    np.testing.assert_array_equal(one.lm.dense(hidden), other.lm.dense(hidden))
    assert [line.valid_perplexity for line in one.curve] == [
        line.valid_perplexity for line in other.curve
    ]


# Trains in a fork for each folder it is sent: torch is loaded once.
FORKS = """
import os, sys
from pathlib import Path
import torch
from tests.lm.test_training import CONFIG, NETWORK, cycle
from unbounded.corpus import Tokenizer
from unbounded.lm import train_model
torch.set_num_threads(1)
for line in sys.stdin:
    if not (pid := os.fork()):
        folder, every = Path(line[:-1]), 1e9 if line.endswith("whole\\n") else 0.0
        for progress in train_model(
            folder, cycle(12_000), Tokenizer(), NETWORK, CONFIG, resume=True, save_every=every
        ):
            print(progress.words, flush=True)
        os._exit(0)
    print(pid, flush=True)
    print("status", os.waitpid(pid, 0)[1], flush=True)
"""


def test_kill_9_at_any_moment_loses_at_most_what_was_not_saved(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None
        for name, kill in [*[("killed", True)] * 3, ("killed", False), ("whole", False)]:
            forks.stdin.write(f"{tmp_path / name}\n")
            forks.stdin.flush()
            child = int(forks.stdout.readline())
            if kill:
                for _ in range(int(random.integers(2, 9))):
                    assert forks.stdout.readline().strip().isdigit()
                os.kill(child, signal.SIGKILL)
            said = next(line for line in forks.stdout if line.startswith("status"))
            assert said.split()[1] == str(int(signal.SIGKILL) if kill else 0)
    assert_same(load_model(tmp_path / "whole"), load_model(tmp_path / "killed"))
    assert not [file for file in (tmp_path / "killed").iterdir() if file.name.startswith(".")]


def test_training_stops_early_and_keeps_the_best_epoch(tmp_path: Path) -> None:
    text = cycle(1_200)
    noise = np.random.default_rng(0).integers(0, len(text.counts), 400)
    hard = replace(text, valid=noise)
    run(tmp_path / "m", hard, replace(CONFIG, epochs=40, patience=2))
    model = load_model(tmp_path / "m")
    best = min(model.curve, key=lambda line: line.valid_perplexity or math.inf)
    assert len(model.curve) == best.epoch + 2 < 40
    assert model.config["training"]["best_epoch"] == best.epoch


@pytest.mark.parametrize(
    ("network", "config", "cut", "said"),
    [
        (NETWORK, CONFIG, "text", "another text"),
        (NETWORK, CONFIG, "valid", "another text"),
        (NETWORK, replace(CONFIG, learning_rate=0.3), "", r"learning_rate 0\.1, not 0\.3"),
        (replace(NETWORK, units=24), CONFIG, "", "units 16, not 24"),
        (NETWORK, CONFIG, "file", "cannot be resumed"),
    ],
)
def test_another_text_setting_or_damaged_state_cannot_be_resumed(
    tmp_path: Path, network: NetworkConfig, config: TrainingConfig, cut: str, said: str
) -> None:
    text = cycle(3_000)
    trainer = trainer_of(text)
    next(trainer.run(text.valid, every=1))
    save_training(tmp_path, trainer, text)
    if cut == "file":
        whole = (tmp_path / TRAINING).read_bytes()
        (tmp_path / TRAINING).write_bytes(whole[: len(whole) // 2])
    other = {"text": cycle(2_900), "valid": replace(text, valid=text.valid[:-1])}.get(cut, text)
    with pytest.raises((TrainingError, ModelError), match=said):
        resume_training(tmp_path, Trainer(other.words, other.counts, 0, network, config), other)


def test_a_finished_or_interrupted_folder_is_not_overwritten(tmp_path: Path) -> None:
    text = cycle(3_000)
    run(tmp_path / "m", text)
    with pytest.raises(ModelError, match="already holds a trained model"):
        run(tmp_path / "m", text)
    training = train_model(tmp_path / "i", text, Tokenizer(), NETWORK, CONFIG, save_every=0.0)
    next(training)
    training.close()
    with pytest.raises(ModelError, match="--resume"):
        run(tmp_path / "i", text)


def test_a_loss_that_is_no_number_ends_in_one_line() -> None:
    text = cycle(3_000)
    trainer = trainer_of(text)
    trainer.embedding.fill_(math.nan)
    with pytest.raises(TrainingError, match="lower --learning-rate"):
        list(trainer.run(text.valid))


def test_too_short_a_text_is_said() -> None:
    with pytest.raises(TrainingError, match="8 are needed"):
        Trainer(np.arange(5), np.ones(5, np.int64), 0, NETWORK, CONFIG)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TrainingConfig(epochs=0),
        lambda: TrainingConfig(learning_rate=0.0),
        lambda: TrainingConfig(learning_rate=math.nan),
        lambda: TrainingConfig(dropout=1.0),
        lambda: TrainingConfig(streams=0),
        lambda: NetworkConfig(units=0),
        lambda: NetworkConfig(cutoffs=(40, 20)),
        lambda: NetworkConfig(cutoffs=()),
        lambda: NetworkConfig(cell="brain"),
        lambda: AdaptedConfig(every=0),
        lambda: AdaptedConfig(rank=0),
        lambda: AdaptedConfig(calm=0.0),
        lambda: DynamicConfig(segment=0),
        lambda: DynamicConfig(learning_rate=0.0),
        lambda: DynamicConfig(calm=-1.0),
        lambda: DynamicHeadConfig(segment=0),
        lambda: DynamicHeadConfig(rate=0.0),
        lambda: DynamicHeadConfig(calm=math.nan),
        lambda: AdapterConfig(segment=0),
        lambda: AdapterConfig(rate=-1.0),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(SettingError, match=r"must be|unknown"):
        make()


def sentences(*lines: str) -> list[Sentence]:
    return [Sentence((*line.split(), "</s>"), "text", n) for n, line in enumerate(lines, 1)]


def test_the_words_after_the_training_words_validate_and_enter_no_vocabulary() -> None:
    text = training_text(sentences("b a b", "a b c d"), tokens=6)
    assert text.vocabulary.decode(text.words) == ["b", "a", "b", "</s>", "a", "b"]
    assert text.vocabulary.decode(np.arange(3)) == ["b", "a", "</s>"]
    assert text.counts.tolist() == [3, 2, 1]
    assert text.valid.tolist() == [-1, -1, 2]
    given = training_text(sentences("a b"), 10, sentences("c a"))
    assert (given.valid.tolist(), len(given.vocabulary)) == ([-1, 0, 2], 3)
    # A short text gives its last twentieth.
    short = training_text(sentences(*["a b c"] * 10), tokens=1_000)
    assert (len(short.words), len(short.valid)) == (38, 2)
    with pytest.raises(TrainingError, match="0 words to train on"):
        training_text(sentences(), 10)
