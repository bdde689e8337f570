"""Ids → hidden states: the network, its training, its folder (the only user of torch).

What needs torch is looked up when it is first used: reading with a recurrent model does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbounded.errors import named
from unbounded.lm.adapted_head import AdaptedConfig as AdaptedConfig
from unbounded.lm.adapted_head import AdaptedHead as AdaptedHead
from unbounded.lm.adapted_head import SharedHead as SharedHead
from unbounded.lm.adapter import Adapter as Adapter
from unbounded.lm.adapter import AdapterConfig as AdapterConfig
from unbounded.lm.language_model import HeadedModel as HeadedModel
from unbounded.lm.language_model import LanguageModel as LanguageModel
from unbounded.lm.learning_head import DynamicHeadConfig as DynamicHeadConfig
from unbounded.lm.learning_head import LearningHead as LearningHead
from unbounded.lm.learning_head import LearningLayer as LearningLayer
from unbounded.lm.model_folder import Pretrained as Pretrained
from unbounded.lm.model_folder import from_transformers as from_transformers
from unbounded.lm.model_folder import load_model as load_model
from unbounded.lm.recurrent import RecurrentModel as RecurrentModel
from unbounded.lm.settings import PAPER_TRAINING as PAPER_TRAINING
from unbounded.lm.settings import NetworkConfig as NetworkConfig
from unbounded.lm.settings import Progress as Progress
from unbounded.lm.settings import TrainingConfig as TrainingConfig
from unbounded.lm.settings import TransformerConfig as TransformerConfig

if TYPE_CHECKING:
    from unbounded.lm.dynamic_model import DynamicConfig as DynamicConfig
    from unbounded.lm.dynamic_model import DynamicModel as DynamicModel
    from unbounded.lm.pytorch import TorchModel as TorchModel
    from unbounded.lm.saved_training import check_folder as check_folder
    from unbounded.lm.saved_training import train as train
    from unbounded.lm.saved_training import train_model as train_model
    from unbounded.lm.transformer import TransformerModel as TransformerModel

_WITH_TORCH = {
    "DynamicConfig": "dynamic_model",
    "DynamicModel": "dynamic_model",
    "TorchModel": "pytorch",
    "TransformerModel": "transformer",
    "check_folder": "saved_training",
    "train": "saved_training",
    "train_model": "saved_training",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'unbounded.lm' has no attribute {name!r}")
    try:
        return getattr(import_module(f"unbounded.lm.{_WITH_TORCH[name]}"), name)
    except ModuleNotFoundError as error:
        raise named(error) from error
