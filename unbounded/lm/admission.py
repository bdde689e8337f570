"""What a folder of `transformers` must not hold: code, or weights that can be code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbounded.errors import ModelError
from unbounded.files import parse_json

_WEIGHTS = ".safetensors"


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
    return isinstance(name, str) and name.endswith(_WEIGHTS) and "/" not in name


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
