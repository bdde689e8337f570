"""A language model that never stops reading.

The public names, each looked up when it is first used: `import unbounded` and `unbounded --help`
need not wait for torch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbounded.version import __version__ as __version__

# Read when torch is loaded, which is later. Threads that wait for others let them work: where
# another program ran beside it, training with spinning threads was twenty times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from unbounded.corpus import Reader as Reader
    from unbounded.corpus import Tokenizer as Tokenizer
    from unbounded.corpus import Vocabulary as Vocabulary
    from unbounded.corpus import blocks as blocks
    from unbounded.corpus import read_sentences as read_sentences
    from unbounded.errors import CorpusError as CorpusError
    from unbounded.errors import EngineError as EngineError
    from unbounded.errors import MemoryFault as MemoryFault
    from unbounded.errors import MissingExtra as MissingExtra
    from unbounded.errors import ModelError as ModelError
    from unbounded.errors import SettingError as SettingError
    from unbounded.errors import StoreError as StoreError
    from unbounded.errors import TrainingError as TrainingError
    from unbounded.errors import UnboundedError as UnboundedError
    from unbounded.evaluation.evaluate import EvaluationConfig as EvaluationConfig
    from unbounded.evaluation.evaluate import evaluate as evaluate
    from unbounded.experts import Kernel as Kernel
    from unbounded.integrations.transformers_generate import Writer as Writer
    from unbounded.lm import NetworkConfig as NetworkConfig
    from unbounded.lm import TrainingConfig as TrainingConfig
    from unbounded.lm import TransformerConfig as TransformerConfig
    from unbounded.lm import from_transformers as from_transformers
    from unbounded.lm import load_model as load_model
    from unbounded.lm import train_model as train_model
    from unbounded.lm import training_text as training_text
    from unbounded.memory import Budget as Budget
    from unbounded.memory import Memory as Memory
    from unbounded.memory import Prediction as Prediction
    from unbounded.memory import open as open
    from unbounded.memory.sharded_memory import open_sharded as open_sharded
    from unbounded.model import OnlineModel as OnlineModel
    from unbounded.presets import MemoryConfig as MemoryConfig
    from unbounded.presets import build_online as build_online
    from unbounded.store.backup import backup as backup
    from unbounded.store.backup import restore as restore

_WHERE = {
    "unbounded.presets": ("MemoryConfig", "build_online"),
    "unbounded.corpus": ("Reader", "Tokenizer", "Vocabulary", "blocks", "read_sentences"),
    "unbounded.errors": (
        "CorpusError",
        "EngineError",
        "MemoryFault",
        "MissingExtra",
        "ModelError",
        "SettingError",
        "StoreError",
        "TrainingError",
        "UnboundedError",
    ),
    "unbounded.evaluation.evaluate": ("EvaluationConfig", "evaluate"),
    "unbounded.memory": ("Budget", "Memory", "Prediction", "open"),
    "unbounded.memory.sharded_memory": ("open_sharded",),
    "unbounded.lm": (
        "NetworkConfig",
        "TrainingConfig",
        "TransformerConfig",
        "from_transformers",
        "load_model",
        "train_model",
        "training_text",
    ),
    "unbounded.experts": ("Kernel",),
    "unbounded.model": ("OnlineModel",),
    "unbounded.store.backup": ("backup", "restore"),
    "unbounded.integrations.transformers_generate": ("Writer",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unbounded' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
