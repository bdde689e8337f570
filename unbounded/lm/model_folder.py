"""From a text to a model folder, surviving interruption at any point."""

import time
from collections.abc import Generator
from pathlib import Path

import numpy as np

from unbounded.corpus import SENTENCE_END, Tokenizer
from unbounded.errors import ModelError
from unbounded.lm.checkpoint import CONFIG, TRAINING
from unbounded.lm.network_threads import training_threads
from unbounded.lm.prepared_text import TrainingText
from unbounded.lm.saving import resume_training, save_model, save_training
from unbounded.lm.settings import NetworkConfig, Progress, TrainingConfig
from unbounded.lm.training import Trainer


def check_folder(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that holds a model, or an interrupted training that is not to go on."""
    if (folder / CONFIG).exists():
        raise ModelError(
            f"{folder} already holds a trained model; choose another --out, or remove it"
        )
    if (folder / TRAINING).exists() and not resume:
        raise ModelError(
            f"{folder} holds an interrupted training; go on with --resume, or remove it first"
        )


def train_model(
    folder: Path,
    text: TrainingText,
    tokenizer: Tokenizer,
    network: NetworkConfig,
    config: TrainingConfig,
    *,
    resume: bool = False,
    save_every: float = 60.0,
) -> Generator[Progress]:
    """Train into `folder`, yielding the curve; the state is saved each `save_every` seconds.

    With `resume`, an interrupted run goes on and ends where it would have ended; without one to
    resume, it starts from the beginning.
    """
    check_folder(folder, resume=resume)
    end = int(text.vocabulary.lookup([SENTENCE_END])[0])
    trainer = Trainer(text.words, text.counts, end, network, config)
    folder.mkdir(parents=True, exist_ok=True)
    resume_training(folder, trainer, text)
    size = text.vocabulary.base_size
    valid = np.where(text.valid < 0, size, text.valid)
    saved = time.monotonic()
    with training_threads():
        for progress in trainer.run(valid):
            if progress.valid_perplexity is not None or time.monotonic() - saved > save_every:
                save_training(folder, trainer, text)
                saved = time.monotonic()
            yield progress
    save_model(folder, trainer, network, text, tokenizer)
