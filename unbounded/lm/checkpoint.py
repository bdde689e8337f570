"""A model folder: weights in safetensors, everything else in JSON and plain text, no pickle.

MODEL/
  config.json            format, network, tokenizer, training; written last: it makes the model
  weights.safetensors    embedding, cell, head
  vocabulary.txt         one word a line, most frequent first
  curve.jsonl            one line an epoch
  text.safetensors       the training words, for experts that read them first; may be left out
  training.safetensors   only while training: weights, Adagrad's sums, best weights so far
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unbounded.corpus import SENTENCE_END, Splitter, Tokenizer, Vocabulary
from unbounded.errors import ModelError, TrainingError, UnboundedError
from unbounded.files import write_aside, write_text_aside
from unbounded.lm.encoder import Encoder, NetworkConfig
from unbounded.lm.head import build_head
from unbounded.lm.huggingface import (
    described,
    is_transformer,
    kept_pieces,
    open_network,
    wrapped,
)
from unbounded.lm.model import HeadedModel, LanguageModel, RecurrentModel
from unbounded.lm.strangers import Speller
from unbounded.lm.text import TrainingText
from unbounded.lm.training import Progress, Trainer
from unbounded.lm.transformer import TransformerConfig
from unbounded.types import Ids

FORMAT = 1

CONFIG, WEIGHTS, VOCABULARY = "config.json", "weights.safetensors", "vocabulary.txt"
CURVE, TRAINING, TEXT = "curve.jsonl", "training.safetensors", "text.safetensors"


@dataclass(frozen=True)
class Pretrained:
    """A frozen network with the vocabulary and the tokenizer it was trained with."""

    lm: LanguageModel
    vocabulary: Vocabulary
    tokenizer: Splitter
    config: Mapping[str, Any]
    curve: tuple[Progress, ...]
    text: Ids | None = None
    """The words it was trained on, in order, if they are kept."""
    folder: Path | None = None
    """Where it was loaded from."""

    @cached_property
    def speller(self) -> Speller:
        """Vectors for words that it does not know; fitted when first asked for."""
        return Speller(self.recurrent, self.vocabulary)

    @property
    def headed(self) -> HeadedModel:
        """The network as one whose output layer can be looked into."""
        if not isinstance(self.lm, HeadedModel):
            raise ModelError("the output layer of this network is hidden; leave out 'adapted'")
        return self.lm

    @property
    def recurrent(self) -> RecurrentModel:
        """The network as one of ours, whose layers can be looked into."""
        if not isinstance(self.lm, RecurrentModel):
            raise ModelError(
                "this is no recurrent network of ours; leave out --strangers characters and the "
                "expert dynamic"
            )
        return self.lm

    @property
    def fingerprint(self) -> str:
        """The same for the same network, words and tokenizer, and for no others."""
        parts = {name: self.config.get(name) for name in ("network", "tokenizer", "checksums")}
        return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def load_model(folder: Path, transformer: TransformerConfig = TransformerConfig()) -> Pretrained:
    """Open a model folder; a missing, foreign, damaged or newer one is a one-line `ModelError`.

    A folder of `transformers` or a GGUF file will do as well, and is read as `transformer` says.
    """
    if is_transformer(folder):
        return from_transformers(*open_network(folder), transformer, folder=folder)
    if transformer != TransformerConfig():
        raise ModelError(
            f"{folder} is no transformer: it has no context and no choice of keys; leave them out"
        )
    config = _config(folder)
    try:
        vocabulary = Vocabulary.from_text((folder / VOCABULARY).read_text(encoding="utf-8"))
        network = NetworkConfig(
            cell=config["network"]["cell"],
            units=config["network"]["units"],
            cutoffs=tuple(config["network"]["cutoffs"]),
        )
        encoder = Encoder(len(vocabulary), network)
        head = build_head(network.units, len(vocabulary), network.cutoffs)
        _check(folder / WEIGHTS, config["checksums"][WEIGHTS])
        _check(folder / VOCABULARY, config["checksums"][VOCABULARY])
        weights = _read(folder / WEIGHTS)[0]
        encoder.embedding.load_state_dict({"weight": weights.pop("embedding")})
        for part, module in (("cell", encoder.cell), ("head", head)):
            mine = {k.removeprefix(f"{part}."): w for k, w in weights.items() if k.startswith(part)}
            module.load_state_dict(mine)
        tokenizer = Tokenizer.from_config(config["tokenizer"])
        curve = tuple(
            Progress(**json.loads(line))
            for line in (folder / CURVE).read_text(encoding="utf-8").splitlines()
        )
        text = _load_text(folder, vocabulary)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, UnboundedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"{folder} is a damaged model ({reason}); train it again, or restore it from a copy"
        ) from error
    end = int(vocabulary.lookup([SENTENCE_END])[0])
    lm = RecurrentModel(encoder, head, end)
    return Pretrained(lm, vocabulary, tokenizer, config, curve, text, folder)


def from_transformers(
    network: Any,
    tokenizer: Any,
    config: TransformerConfig = TransformerConfig(),
    *,
    folder: Path | None = None,
) -> Pretrained:
    """Any causal model of `transformers` with its tokenizer; nothing in it is changed.

    The `folder` is looked into for the text that it was trained on, if that is kept there.
    """
    lm, pieces = wrapped(network, tokenizer, config)
    text = None if folder is None else kept_pieces(folder, pieces)
    return Pretrained(lm, pieces.vocabulary, pieces, described(lm, pieces), (), text)


def keep_text(folder: Path, model: Pretrained, text: TrainingText) -> Pretrained:
    """Put the training words into the folder of a model that lacks them."""
    if text.vocabulary.to_text() != model.vocabulary.to_text():
        raise ModelError(
            f"{folder} was trained on another text; give the one it was trained on, or train again"
        )
    _save_text(folder, text.vocabulary, text.words)
    return replace(model, text=text.words)


def _save_text(folder: Path, vocabulary: Vocabulary, words: Ids) -> None:
    # Bound to the vocabulary: the same ids are other words in another one.
    metadata = {"checksum": str(_text_checksum(vocabulary, words))}
    _write(folder / TEXT, {"words": torch.from_numpy(words.astype(np.int32))}, metadata)


def _load_text(folder: Path, vocabulary: Vocabulary) -> Ids | None:
    if not (folder / TEXT).exists():
        return None
    tensors, metadata = _read(folder / TEXT)
    words: Ids = tensors["words"].numpy().astype(np.int64)
    if metadata["checksum"] != str(_text_checksum(vocabulary, words)):
        raise ValueError(f"{TEXT} is not the text of this vocabulary")
    return words


def _text_checksum(vocabulary: Vocabulary, words: Ids) -> int:
    value = zlib.crc32(vocabulary.to_text().encode())
    return zlib.crc32(np.ascontiguousarray(words, np.int64).tobytes(), value)


def save_model(
    folder: Path,
    trainer: Trainer,
    network: NetworkConfig,
    text: TrainingText,
    tokenizer: Tokenizer,
) -> None:
    """Write the best weights and all that goes with them, then remove the training state."""
    vocabulary = text.vocabulary
    weights = {name: weight.contiguous() for name, weight in trainer.best.items()}
    _write(folder / WEIGHTS, weights, {})
    write_text_aside(folder / VOCABULARY, vocabulary.to_text())
    curve = "".join(json.dumps(asdict(line)) + "\n" for line in trainer.curve)
    write_text_aside(folder / CURVE, curve)
    _save_text(folder, vocabulary, text.words)
    config = {
        "format": FORMAT,
        "kind": "unbounded recurrent model",
        "network": asdict(network),
        "tokenizer": tokenizer.config(),
        "training": {
            **asdict(trainer.config),
            "tokens": trainer.batches.length * trainer.config.streams,
            "best_epoch": trainer.best_epoch,
            "seconds": trainer.seconds,
        },
        "checksums": {name: _checksum(folder / name) for name in (WEIGHTS, VOCABULARY)},
    }
    write_text_aside(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    (folder / TRAINING).unlink(missing_ok=True)


def save_training(folder: Path, trainer: Trainer, text: TrainingText) -> None:
    """Write the whole state of training in one file, so that no crash can tear it."""
    tensors = {f"weights.{name}": w.contiguous() for name, w in trainer.weights().items()}
    tensors |= {f"best.{name}": w.contiguous() for name, w in trainer.best.items()}
    tensors["sums.embedding"] = trainer.embedding_sums
    for name, weight in trainer.dense.items():
        tensors[f"sums.{name}"] = trainer.adagrad.state[weight]["sum"]
        tensors[f"steps.{name}"] = trainer.adagrad.state[weight]["step"]
    tensors |= {f"state.{i}": part.contiguous() for i, part in enumerate(trainer.state)}
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
    _write(folder / TRAINING, tensors, metadata)


def resume_training(folder: Path, trainer: Trainer, text: TrainingText) -> bool:
    """Put `trainer` where the interrupted run was; False if there was none."""
    path = folder / TRAINING
    if not path.exists():
        return False
    try:
        tensors, metadata = _read(path)
        about = json.loads(metadata["training"])
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
    value = _text_checksum(text.vocabulary, text.words)
    return zlib.crc32(np.ascontiguousarray(text.valid, np.int64).tobytes(), value)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not folder.exists():
        raise ModelError(f"{folder} does not exist; make a model with 'unbounded train TEXT --out'")
    if not path.is_file():
        hint = (
            "its training was interrupted: finish it with 'unbounded train --resume'"
            if (folder / TRAINING).exists()
            else "give a folder made by 'unbounded train'"
        )
        raise ModelError(f"{folder} is not a model (it has no {CONFIG}); {hint}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        found = config["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is not a model's configuration; give a folder made by 'unbounded train'"
        ) from error
    if found != FORMAT:
        raise ModelError(
            f"{folder} was written in format {found}; this version reads {FORMAT}: "
            "upgrade unbounded, or train it again"
        )
    assert isinstance(config, dict)
    return config


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a safetensors file, copied out of it, and its metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from error


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file aside and rename it into place."""
    try:
        write_aside(path, lambda aside: save_file(tensors, aside, metadata))
    except SafetensorError as error:
        raise ModelError(
            f"{path} could not be written ({error}); free some space, or choose another place"
        ) from error


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value


def _check(path: Path, expected: int) -> None:
    found = _checksum(path)
    if found != expected:
        raise ValueError(f"{path.name} has checksum {found}, not {expected}")
