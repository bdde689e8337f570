"""Model folders that try to run: each leaves a marker if a file of its is imported or unpickled."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

from tests.transformers_small import saved

MARKER = "the-canary-sang"

_CODE = """
import pathlib
pathlib.Path({marker!r}).touch()
from transformers import GPT2Config as CanaryConfig, GPT2LMHeadModel as CanaryModel
from transformers import PreTrainedTokenizerFast as CanaryTokenizer
"""

_MAP = {
    "AutoConfig": "modeling_canary.CanaryConfig",
    "AutoModelForCausalLM": "modeling_canary.CanaryModel",
    "AutoTokenizer": ["modeling_canary.CanaryTokenizer", "modeling_canary.CanaryTokenizer"],
}


class _Singing:
    """Unpickled, it leaves the marker."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self._marker,)


def _change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}))


def _pickled(folder: Path, name: str) -> None:
    (folder / name).write_bytes(pickle.dumps({"weight": _Singing(folder.parent / MARKER)}))
    (folder / "model.safetensors").unlink(missing_ok=True)


def _code(folder: Path) -> None:
    _change(folder / "config.json", auto_map=_MAP, model_type="songbird")
    _change(folder / "tokenizer_config.json", auto_map=_MAP, tokenizer_class="CanaryTokenizer")
    _pickled(folder, "pytorch_model.bin")


def _code_of_a_version(folder: Path) -> None:
    _change(folder / "config.json", configuration_files=["config.4.0.0.json"])
    shutil.copy(folder / "config.json", folder / "config.4.0.0.json")
    _change(folder / "config.4.0.0.json", auto_map=_MAP, model_type="songbird")


def _tokenizer_code(folder: Path) -> None:
    _change(folder / "tokenizer_config.json", auto_map=_MAP, tokenizer_class="CanaryTokenizer")


def _index_of_pickles(folder: Path) -> None:
    _pickled(folder, "pytorch_model.bin")
    index = {"metadata": {}, "weight_map": {"weight": "pytorch_model.bin"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _beside_gguf(folder: Path) -> None:
    _code(folder)
    (folder / "model.gguf").write_bytes(b"GGUF" + bytes(200))


KINDS = {
    "code": _code,
    "code of a version": _code_of_a_version,
    "tokenizer code": _tokenizer_code,
    "a kernel": lambda folder: _change(
        folder / "config.json", attn_implementation="somebody/kernel"
    ),
    "pickled weights": lambda folder: _pickled(folder, "pytorch_model.bin"),
    "an index of pickles": _index_of_pickles,
    "weights elsewhere": lambda folder: _change(
        folder / "config.json", transformers_weights="../there/model.safetensors"
    ),
    "an adapter": lambda folder: (folder / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "somebody/else"}'
    ),
    "beside a GGUF file": _beside_gguf,
}


def canary(folder: Path, kind: str = "code") -> Path:
    """A folder that a careless opening would run; its marker is put beside it."""
    saved(folder)
    code = _CODE.format(marker=str(folder.parent / MARKER))
    for name in ("modeling_canary.py", "configuration_canary.py", "tokenization_canary.py"):
        (folder / name).write_text(code)
    KINDS[kind](folder)
    return folder / "model.gguf" if kind == "beside a GGUF file" else folder
