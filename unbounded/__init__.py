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
        train,
    )
    from unbounded.lm.model_folder import load, load_model
    from unbounded.memory import Budget, Memory, open
    from unbounded.presets import MemoryConfig, build_online
    from unbounded.store.backup import backup, restore

_NAMES = {
    "corpus": ("Pretokenized", "Reader", "Tokenizer"),
    "evaluation.evaluate": ("EvaluationConfig", "evaluate"),
    "integrations.transformers_generate": ("Writer",),
    "lm": ("NetworkConfig", "TrainingConfig", "TransformerConfig", "from_transformers", "train"),
    "lm.model_folder": ("load", "load_model"),
    "memory": ("Budget", "Memory", "open"),
    "presets": ("MemoryConfig", "build_online"),
    "store.backup": ("backup", "restore"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

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
        return getattr(import_module(f"unbounded.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        raise named(error) from error


def __dir__() -> list[str]:
    return sorted(__all__)
