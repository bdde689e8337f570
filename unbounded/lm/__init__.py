"""Ids → hidden states: the network, its training, its folder (the only user of torch)."""

from unbounded.lm.adapted import AdaptedConfig as AdaptedConfig
from unbounded.lm.adapted import AdaptedHead as AdaptedHead
from unbounded.lm.adapted import SharedHead as SharedHead
from unbounded.lm.checkpoint import Pretrained as Pretrained
from unbounded.lm.checkpoint import from_transformers as from_transformers
from unbounded.lm.checkpoint import load_model as load_model
from unbounded.lm.dynamic import DynamicConfig as DynamicConfig
from unbounded.lm.dynamic import DynamicModel as DynamicModel
from unbounded.lm.encoder import NetworkConfig as NetworkConfig
from unbounded.lm.model import HeadedModel as HeadedModel
from unbounded.lm.model import LanguageModel as LanguageModel
from unbounded.lm.model import RecurrentModel as RecurrentModel
from unbounded.lm.text import TrainingText as TrainingText
from unbounded.lm.text import training_text as training_text
from unbounded.lm.train import check_folder as check_folder
from unbounded.lm.train import train_model as train_model
from unbounded.lm.training import Progress as Progress
from unbounded.lm.training import TrainingConfig as TrainingConfig
from unbounded.lm.transformer import TransformerConfig as TransformerConfig
from unbounded.lm.transformer import TransformerModel as TransformerModel
