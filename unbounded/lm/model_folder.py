"""A model folder: weights in safetensors, everything else in JSON and plain text, no pickle.

MODEL/
  config.json            format, network, tokenizer, training; written last: it makes the model
  weights.safetensors    embedding, cell, head; in float32, or in 8 bits with a scale a row
  vocabulary.txt         one word a line, most frequent first
  curve.jsonl            one line an epoch
  text.safetensors       the training words, for experts that read them first; may be left out
  training.safetensors   only while training: weights, Adagrad's sums, best weights so far

Files are written whole or not at all. Where one must be small, a weight takes 8 bits and each row
of them a scale; words are packed.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from unbounded.corpus import SENTENCE_END, Splitter, TrainingText, Vocabulary, tokenizer_of
from unbounded.errors import ModelError, UnboundedError
from unbounded.files import parse_json, write_atomically
from unbounded.lm.huggingface import described, is_transformer, open_network, start_mark
from unbounded.lm.language_model import HeadedModel, LanguageModel
from unbounded.lm.oov import Speller
from unbounded.lm.recurrent import RecurrentModel
from unbounded.lm.settings import NetworkConfig, Progress, Shape, TransformerConfig, weight_shapes
from unbounded.lm.subwords import PieceTokenizer
from unbounded.types import Ids

FORMAT = 1

CONFIG, WEIGHTS, VOCABULARY = "config.json", "weights.safetensors", "vocabulary.txt"
CURVE, TRAINING, TEXT = "curve.jsonl", "training.safetensors", "text.safetensors"
PIECES = f"unbounded-{TEXT}"
"""The training text of a transformer, beside its own files."""

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
    from unbounded.lm.transformer import TransformerModel, find_head

    pieces = PieceTokenizer(tokenizer, find_head(network).out_features)
    lm = TransformerModel(network, start_mark(tokenizer, pieces), config)
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


def keep_pieces(folder: Path, pieces: PieceTokenizer, text: Ids) -> None:
    """Put the ids that a network was trained on beside it, for experts that read them first."""
    write_words(folder / PIECES, text, _names(pieces))


def kept_pieces(folder: Path, pieces: PieceTokenizer) -> Ids | None:
    """The ids that a network was trained on, if they are kept beside it."""
    try:
        return read_words(folder / PIECES, _names(pieces))
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{folder / PIECES} is damaged ({error}); remove it") from error


def _names(pieces: PieceTokenizer) -> bytes:
    return json.dumps(pieces.config(), sort_keys=True).encode()


# Arrays and words in files.

SCALE = ".scale"
"""What is added to the name of 8-bit weights for their scales."""

MOST_PACKED = 64
"""Bytes that one byte of packed words may unpack to; text has about two."""


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All arrays of a file, copied out of it, and its metadata; a `ValueError` at a damaged one."""
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from error


def write_arrays(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a file aside and rename it into place."""
    try:
        with write_atomically(path) as aside:
            # `save_file` leaves it to the user alone; others may read it as the umask says.
            aside.touch()
            mode = aside.stat().st_mode & 0o777
            save_file(arrays, aside, metadata)
            aside.chmod(mode)
    except SafetensorError as error:
        raise ModelError(
            f"{path} could not be written ({error}); free some space, or choose another place"
        ) from error


def in_eight_bits(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same weights as whole numbers from −127 to 127 and a scale a row; biases as they are.

    >>> small = in_eight_bits({"w": np.array([[0.5, -1.27], [0, 0]], np.float32)})
    >>> small["w"].tolist(), small["w.scale"].round(4).tolist()
    ([[50, -127], [0, 0]], [0.009999999776482582, 0.0])
    >>> in_full(small)["w"].round(2).tolist()
    [[0.5, -1.2699999809265137], [0.0, 0.0]]
    """
    small: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        if array.ndim < 2:
            small[name] = array
            continue
        scale = np.abs(array).max(axis=1) / np.float32(127)
        steps = array / np.where(scale == 0, 1, scale)[:, None]
        small[name] = np.rint(steps).astype(np.int8)
        small[name + SCALE] = scale.astype(np.float32)
    return small


def in_full(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights in float32, those in 8 bits too; a `ValueError` where a row has no scale."""
    full: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        scale = weights.get(name + SCALE)
        if name.removesuffix(SCALE) != name and name.removesuffix(SCALE) in weights:
            continue
        if scale is None:
            full[name] = array
            continue
        if scale.dtype != np.float32 or array.dtype != np.int8 or scale.shape != array.shape[:1]:
            raise ValueError(f"{name} and its scales do not fit together")
        full[name] = array * scale[:, None]
    return full


def write_words(path: Path, words: Ids, vocabulary: bytes, *, packed: bool = False) -> None:
    """Write the ids of a text, bound to a vocabulary: in another one they are other words.

    Packed, ids below 65,536 take about a byte each.
    """
    metadata = {"checksum": str(words_checksum(words, vocabulary))}
    arrays = {"words": words.astype(np.int32)}
    if packed:
        assert not len(words) or words.max() < 1 << 16
        data = zstandard.ZstdCompressor(level=22).compress(words.astype("<u2").tobytes())
        arrays = {"packed": np.frombuffer(data, np.uint8)}
    write_arrays(path, arrays, metadata)


def read_words(path: Path, vocabulary: bytes) -> Ids | None:
    """The ids that `write_words` wrote, None if there are none; a `ValueError` if damaged."""
    if not path.is_file():
        return None
    arrays, metadata = read_arrays(path)
    words: Ids = (_unpacked(arrays["packed"]) if "packed" in arrays else arrays["words"]).astype(
        np.int64
    )
    if metadata["checksum"] != str(words_checksum(words, vocabulary)):
        raise ValueError(f"{path.name} is not the text of this vocabulary")
    return words


def _unpacked(packed: np.ndarray) -> np.ndarray:
    data = packed.tobytes()
    try:
        # Looked at before anything is allocated by what the file says.
        if zstandard.get_frame_parameters(data).content_size > MOST_PACKED * len(data):
            raise ValueError("the words would unpack to more than any text does")
        return np.frombuffer(zstandard.ZstdDecompressor().decompress(data), "<u2")
    except zstandard.ZstdError as error:
        raise ValueError(f"the words cannot be unpacked ({error})") from error


def words_checksum(words: Ids, vocabulary: bytes) -> int:
    """The same for the same words in the same order, under the same numbers."""
    return zlib.crc32(np.ascontiguousarray(words, np.int64).tobytes(), zlib.crc32(vocabulary))


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value
