"""A model folder: weights in safetensors, everything else in JSON and plain text, no pickle.

MODEL/
  config.json            format, network, tokenizer, training; written last: it makes the model
  weights.safetensors    embedding, cell, head; in float32, or in 8 bits with a scale a row
  vocabulary.txt         one word a line, most frequent first
  curve.jsonl            one line an epoch
  text.safetensors       the training words, for experts that read them first; may be left out
  training.safetensors   only while training: weights, Adagrad's sums, best weights so far
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter, TrainingText, Vocabulary, tokenizer_of
from unbounded.errors import ModelError, UnboundedError
from unbounded.files import parse_json
from unbounded.lm.huggingface import (
    described,
    is_transformer,
    kept_pieces,
    open_network,
    wrapped,
)
from unbounded.lm.language_model import HeadedModel, LanguageModel
from unbounded.lm.recurrent import RecurrentModel, Speller
from unbounded.lm.saved_arrays import checksum, in_full, read_arrays, read_words, write_words
from unbounded.lm.settings import (
    NetworkConfig,
    Progress,
    Shape,
    TransformerConfig,
    weight_shapes,
)
from unbounded.types import Ids

FORMAT = 1

CONFIG, WEIGHTS, VOCABULARY = "config.json", "weights.safetensors", "vocabulary.txt"
CURVE, TRAINING, TEXT = "curve.jsonl", "training.safetensors", "text.safetensors"

DEFAULT = "default"
"""The name of the model that comes with the package, wherever that is installed."""


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
    """Where it was loaded from: a folder, or the name of the default."""

    @cached_property
    def speller(self) -> Speller:
        """Vectors for words that it does not know; fitted when first asked for."""
        return Speller(self.recurrent, self.vocabulary, self.fingerprint)

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
                "this is no recurrent network of ours; leave out --oov characters and the "
                "experts dynamic and dynamic_head"
            )
        return self.lm

    @property
    def fingerprint(self) -> str:
        """The same for the same network, words and tokenizer, and for no others."""
        parts = {name: self.config.get(name) for name in ("network", "tokenizer", "checksums")}
        return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def located(path: Path) -> Path:
    """The folder that a path stands for: itself, unless it is the default model's name.

    That name is never looked for in the working directory, which may be anybody's.
    """
    return Path(__file__).parents[1] / "default_model" if str(path) == DEFAULT else path


def load_model(
    path: str | Path, transformer: TransformerConfig = TransformerConfig()
) -> Pretrained:
    """Open a folder of `train`; a missing, foreign, damaged or newer one is a `ModelError`.

    A folder of `transformers`, a GGUF file or the name "smollm2" will do as well, and is read as
    `transformer` says. "default" is the small model that comes with the package.
    """
    if not isinstance(path, str | Path):
        raise ModelError(
            f"{path!r} is no model but {type(path).__name__}; give the path of a folder, as str or "
            "Path, or 'smollm2'"
        )
    folder = located(Path(path))
    if is_transformer(folder):
        opened = open_network(folder, transformer.device)
        return from_transformers(*opened, transformer, folder=folder)
    if transformer != TransformerConfig():
        raise ModelError(
            f"{folder} is no transformer: it has no context, no choice of keys and no device; "
            "leave them out"
        )
    config = _config(folder)
    try:
        vocabulary = Vocabulary.from_text((folder / VOCABULARY).read_text(encoding="utf-8"))
        network = NetworkConfig(
            cell=config["network"]["cell"],
            units=config["network"]["units"],
            cutoffs=tuple(config["network"]["cutoffs"]),
        )
        _check(folder / WEIGHTS, config["checksums"][WEIGHTS])
        _check(folder / VOCABULARY, config["checksums"][VOCABULARY])
        weights = in_full(read_arrays(folder / WEIGHTS)[0])
        _check_shapes(weights, weight_shapes(network, len(vocabulary)))
        tokenizer = tokenizer_of(config["tokenizer"])
        curve = tuple(
            Progress(**parse_json(line))
            for line in (folder / CURVE).read_text(encoding="utf-8").splitlines()
        )
        text = read_words(folder / TEXT, vocabulary.to_text().encode())
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, UnboundedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"{folder} is a damaged model ({reason}); train it again, or restore it from a copy"
        ) from error
    end = int(vocabulary.lookup([SENTENCE_END])[0])
    lm = RecurrentModel(weights, network.cell, network.ends(len(vocabulary)), end)
    return Pretrained(lm, vocabulary, tokenizer, config, curve, text, Path(path))


load = load_model
"""By its public name."""


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
    return Pretrained(lm, pieces.vocabulary, pieces, described(lm, pieces), (), text, folder)


def keep_text(folder: Path, model: Pretrained, text: TrainingText) -> Pretrained:
    """Put the training words into the folder of a model that lacks them."""
    if text.vocabulary.to_text() != model.vocabulary.to_text():
        raise ModelError(
            f"{folder} was trained on another text; give the one it was trained on, or train again"
        )
    write_words(folder / TEXT, text.words, text.vocabulary.to_text().encode())
    return replace(model, text=text.words)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not folder.exists():
        raise ModelError(
            f"{folder} does not exist; make a model with 'unbounded train TEXT --out'; nothing is "
            "fetched from a model hub: of a model there, download the folder and give its path"
        )
    if not path.is_file():
        hint = (
            "its training was interrupted: finish it with 'unbounded train --resume'"
            if (folder / TRAINING).exists()
            else "give a folder made by 'unbounded train'"
        )
        raise ModelError(f"{folder} is not a model (it has no {CONFIG}); {hint}")
    try:
        config = parse_json(path.read_bytes())
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


def _check_shapes(weights: Mapping[str, np.ndarray], needed: Mapping[str, Shape]) -> None:
    """Refuse weights that are not those of the network: one too many, missing, or of another size.

    Nothing is allocated by what the settings say: a file is as large as it is.
    """
    for name in sorted(weights.keys() | needed.keys()):
        array = weights.get(name)
        found = None if array is None else array.shape
        if found != needed.get(name):
            raise ValueError(
                f"{WEIGHTS} holds {name} of shape {found}; the settings need {needed.get(name)}"
            )
        if array is not None and array.dtype != np.float32:
            raise ValueError(f"{WEIGHTS} holds {name} as {array.dtype}, not float32")


def _check(path: Path, expected: int) -> None:
    found = checksum(path)
    if found != expected:
        raise ValueError(f"{path.name} has checksum {found}, not {expected}")
