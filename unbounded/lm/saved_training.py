"""From a text to a model folder, surviving interruption at any point.

The whole state of a training is one file; at its end the model takes its place.
"""

import json
import time
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbounded.corpus import (
    SENTENCE_END,
    Splitter,
    Text,
    Tokenizer,
    TrainingText,
    WordSplitter,
    as_lines,
    read_sentences,
    training_text,
)
from unbounded.errors import ModelError, SettingError, TrainingError, check_type
from unbounded.files import parse_json, write_text_atomically
from unbounded.lm.devices import device_named, training_threads
from unbounded.lm.model_folder import (
    CONFIG,
    CURVE,
    FORMAT,
    TEXT,
    TRAINING,
    VOCABULARY,
    WEIGHTS,
    Pretrained,
    checksum,
    load_model,
    read_arrays,
    words_checksum,
    write_arrays,
    write_words,
)
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


def train(
    text: Text,
    out: str | Path,
    *,
    tokens: int = 2_000_000,
    valid: Text | None = None,
    network: NetworkConfig = NetworkConfig(),
    config: TrainingConfig = TrainingConfig(),
    tokenizer: WordSplitter = Tokenizer(),
    resume: bool = False,
    device: str = "cpu",
    show: Callable[[Progress, int], None] = lambda progress, total: None,
) -> Pretrained:
    """Train a network on the first `tokens` words of a text, into the folder `out`, and load it.

    Without a text to validate on, the words that follow do. `device` is cpu, cuda or mps. `show`
    hears how far it is, and how many words all epochs have together.
    """
    if not isinstance(out, str | Path):
        raise SettingError(f"out is {out!r}; give the path of a new folder, as str or Path")
    folder = Path(out)
    check_folder(folder, resume=resume)  # before an hour of reading, not after
    device_named(device)
    held = None if valid is None else read_sentences(as_lines(valid), tokenizer)
    check_type(tokens, "tokens", int)
    ready = training_text(read_sentences(as_lines(text), tokenizer), tokens, held)
    training = train_model(folder, ready, tokenizer, network, config, resume=resume, device=device)
    for progress in training:
        show(progress, len(ready.words) * config.epochs)
    return load_model(folder)


def train_model(
    folder: Path,
    text: TrainingText,
    tokenizer: Splitter,
    network: NetworkConfig,
    config: TrainingConfig,
    *,
    resume: bool = False,
    save_every: float = 60.0,
    device: str = "cpu",
) -> Generator[Progress]:
    """Train into `folder`, yielding the curve; the state is saved each `save_every` seconds.

    With `resume`, an interrupted run goes on and ends where it would have ended; without one to
    resume, it starts from the beginning.
    """
    check_folder(folder, resume=resume)
    end = int(text.vocabulary.lookup([SENTENCE_END])[0])
    trainer = Trainer(text.words, text.counts, end, network, config, device_named(device))
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
    _save_model(folder, trainer, text, tokenizer)


def _save_model(folder: Path, trainer: Trainer, text: TrainingText, tokenizer: Splitter) -> None:
    """Write the best weights and all that goes with them, then remove the training state."""
    vocabulary = text.vocabulary
    write_arrays(folder / WEIGHTS, _arrays(trainer.best), {})
    write_text_atomically(folder / VOCABULARY, vocabulary.to_text())
    curve = "".join(json.dumps(asdict(line)) + "\n" for line in trainer.curve)
    write_text_atomically(folder / CURVE, curve)
    known = text.words[text.words < vocabulary.base_size]
    write_words(folder / TEXT, known, vocabulary.to_text().encode())
    config = {
        "format": FORMAT,
        "kind": "unbounded recurrent model",
        "network": asdict(trainer.network),
        "tokenizer": tokenizer.config(),
        "training": {
            **asdict(trainer.config),
            "tokens": trainer.batches.length * trainer.config.streams,
            "best_epoch": trainer.best_epoch,
            "seconds": trainer.seconds,
        },
        "checksums": {name: checksum(folder / name) for name in (WEIGHTS, VOCABULARY)},
    }
    write_text_atomically(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    (folder / TRAINING).unlink(missing_ok=True)


def save_training(folder: Path, trainer: Trainer, text: TrainingText) -> None:
    """Write the whole state of training in one file, so that no crash can tear it."""
    tensors = {f"weights.{name}": weight for name, weight in trainer.weights().items()}
    tensors |= {f"best.{name}": weight for name, weight in trainer.best.items()}
    tensors["sums.embedding"] = trainer.embedding_sums
    for name, weight in trainer.dense.items():
        tensors[f"sums.{name}"] = trainer.adagrad.state[weight]["sum"]
        tensors[f"steps.{name}"] = trainer.adagrad.state[weight]["step"]
    tensors |= {f"state.{i}": part for i, part in enumerate(trainer.state)}
    about = {
        "format": FORMAT,
        "config": _settings(trainer),
        "fingerprint": fingerprint(text),
        "epoch": trainer.epoch,
        "step": trainer.step,
        "seconds": trainer.seconds,
        "nats": trainer.nats,
        "best_valid": trainer.best_valid,
        "best_epoch": trainer.best_epoch,
        "curve": [asdict(line) for line in trainer.curve],
    }
    metadata = {"training": json.dumps(about)}
    write_arrays(folder / TRAINING, _arrays(tensors), metadata)


def resume_training(folder: Path, trainer: Trainer, text: TrainingText) -> bool:
    """Put `trainer` where the interrupted run was; False if there was none."""
    path = folder / TRAINING
    if not path.exists():
        return False
    try:
        arrays, metadata = read_arrays(path)
        tensors = {
            name: torch.from_numpy(array).to(trainer.device) for name, array in arrays.items()
        }
        about = parse_json(metadata["training"])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']}, this version reads {FORMAT}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} cannot be resumed ({error}); remove it and train again"
        ) from error
    if about["fingerprint"] != fingerprint(text):
        raise TrainingError(
            f"{path} was trained on another text; give the same TEXT, --valid and --tokens, "
            "or another --out"
        )
    # Through JSON and back, as what was saved has been.
    asked, had = json.loads(json.dumps(_settings(trainer))), about["config"]
    for name in asked.keys() - {"epochs", "patience"}:
        if asked[name] != had.get(name):
            raise TrainingError(
                f"{path} was trained with {name} {had.get(name)}, not {asked[name]}; "
                f"resume with the same settings, or choose another --out"
            )
    with torch.no_grad():
        for name, weight in trainer.weights().items():
            weight.copy_(tensors[f"weights.{name}"])
    trainer.embedding_sums.copy_(tensors["sums.embedding"])
    for name, weight in trainer.dense.items():
        trainer.adagrad.state[weight]["sum"].copy_(tensors[f"sums.{name}"])
        trainer.adagrad.state[weight]["step"].copy_(tensors[f"steps.{name}"])
    trainer.best = {k.removeprefix("best."): t for k, t in tensors.items() if k.startswith("best.")}
    trainer.state = tuple(tensors[f"state.{i}"] for i in range(len(trainer.state)))
    trainer.epoch, trainer.step = about["epoch"], about["step"]
    trainer.seconds, trainer.nats = about["seconds"], about["nats"]
    trainer.best_valid, trainer.best_epoch = about["best_valid"], about["best_epoch"]
    trainer.curve = [Progress(**line) for line in about["curve"]]
    return True


def _settings(trainer: Trainer) -> dict[str, Any]:
    return asdict(trainer.config) | asdict(trainer.network)


def fingerprint(text: TrainingText) -> int:
    """A checksum of a text: the same words to train and to validate on, in the same order."""
    value = words_checksum(text.words, text.vocabulary.to_text().encode())
    return zlib.crc32(np.ascontiguousarray(text.valid, np.int64).tobytes(), value)


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in tensors.items()}
