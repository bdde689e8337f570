"""A language model that never stops reading.

The public names, each looked up when it is first used: `import unbounded` and `unbounded --help`
need not wait for torch, and reading does without.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbounded.errors import (
    CorpusError,
    EngineError,
    MemoryFault,
    MissingExtra,
    ModelError,
    SettingError,
    StoreError,
    TrainingError,
    UnboundedError,
    named,
)
from unbounded.version import __version__

# Read when torch is loaded, which is later. Threads that wait for others let them work: where
# another program ran beside it, training with spinning threads was twenty times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from unbounded.corpus import Pretokenized, Reader, Tokenizer
    from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
    from unbounded.integrations.transformers_generate import Writer
    from unbounded.lm import (
        NetworkConfig,
        TrainingConfig,
        TransformerConfig,
        from_transformers,
        load_model,
        train,
    )
    from unbounded.lm import load_model as load
    from unbounded.memory import Budget, Memory, open
    from unbounded.presets import MemoryConfig, build_online
    from unbounded.store.backup import backup, restore

_HOME = {
    "Budget": "unbounded.memory",
    "EvaluationConfig": "unbounded.evaluation.evaluate",
    "Memory": "unbounded.memory",
    "MemoryConfig": "unbounded.presets",
    "NetworkConfig": "unbounded.lm",
    "Pretokenized": "unbounded.corpus",
    "Reader": "unbounded.corpus",
    "Tokenizer": "unbounded.corpus",
    "TrainingConfig": "unbounded.lm",
    "TransformerConfig": "unbounded.lm",
    "Writer": "unbounded.integrations.transformers_generate",
    "backup": "unbounded.store.backup",
    "build_online": "unbounded.presets",
    "evaluate": "unbounded.evaluation.evaluate",
    "from_transformers": "unbounded.lm",
    "load": "unbounded.lm",
    "load_model": "unbounded.lm",
    "open": "unbounded.memory",
    "restore": "unbounded.store.backup",
    "train": "unbounded.lm",
}

__all__ = [
    "Budget",
    "CorpusError",
    "EngineError",
    "EvaluationConfig",
    "Memory",
    "MemoryConfig",
    "MemoryFault",
    "MissingExtra",
    "ModelError",
    "NetworkConfig",
    "Pretokenized",
    "Reader",
    "SettingError",
    "StoreError",
    "Tokenizer",
    "TrainingConfig",
    "TrainingError",
    "TransformerConfig",
    "UnboundedError",
    "Writer",
    "__version__",
    "backup",
    "build_online",
    "evaluate",
    "from_transformers",
    "load",
    "load_model",
    "open",
    "restore",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unbounded' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), "load_model" if name == "load" else name)
    except ModuleNotFoundError as error:
        raise named(error) from error


def __dir__() -> list[str]:
    return sorted(__all__)
