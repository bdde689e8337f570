"""A network as small as the toy, but a real one: with a head and gradients."""

from functools import cache

import torch

from tests.toy import ToyModel
from tests.transformers_small import network
from unbounded.experts import Adapted, Dynamic, DynamicHead
from unbounded.lm import (
    AdaptedConfig,
    AdaptedHead,
    Adapter,
    AdapterConfig,
    DynamicConfig,
    DynamicHeadConfig,
    DynamicModel,
    LearningLayer,
    NetworkConfig,
    RecurrentModel,
    SharedHead,
    TransformerConfig,
    TransformerModel,
)
from unbounded.lm.pytorch import Encoder, build_head, frozen, reset_head

TOY = ToyModel(base_size=12, width=5)


def recurrent(
    size: int,
    network: NetworkConfig,
    *,
    seed: int,
    sentence_end: int = 0,
    louder: tuple[float, float] = (1, 1),
) -> RecurrentModel:
    """With random weights; those of the embedding and of the output layer times so much."""
    generator = torch.Generator().manual_seed(seed)
    encoder = Encoder(size, network)
    head = build_head(network.units, size, network.cutoffs)
    encoder.reset_parameters(generator)
    reset_head(head, generator)
    with torch.no_grad():
        encoder.embedding.weight.mul_(louder[0])
        for weight in head.parameters():
            weight.mul_(louder[1])
    return frozen(encoder, head, sentence_end)


def small_network(cell: str = "lstm") -> RecurrentModel:
    """As many words and units as the toy."""
    shape = NetworkConfig(cell=cell, units=TOY.width, cutoffs=(7,))
    return recurrent(TOY.base_size, shape, seed=4, sentence_end=1)


SMALL = {cell: small_network(cell) for cell in ("lstm", "gru")}


def dynamic(cell: str = "lstm") -> Dynamic:
    """Steps so often, and so long, that a word that is learned too early is seen."""
    return Dynamic(DynamicModel(SMALL[cell], DynamicConfig(segment=4, learning_rate=0.1)))


@cache
def small_transformer() -> TransformerModel:
    """As many pieces and units as the toy."""
    return TransformerModel(network("gpt2", TOY.base_size, width=TOY.width), 0, TransformerConfig())


def adapted_transformer() -> Adapted:
    config = AdaptedConfig(every=3, rank=3, learning_rate=0.5)
    return Adapted(AdaptedHead(SharedHead(small_transformer()), config))


def dynamic_head() -> DynamicHead:
    """Quick to learn, in segments that a short text completes."""
    config = DynamicHeadConfig(segment=3, rate=0.5, adapter_rate=0.1)
    return DynamicHead(SMALL["lstm"], LearningLayer(SMALL["lstm"].output_layer, config))


def dynamic_transformer() -> DynamicHead:
    config = AdapterConfig(segment=3, rate=0.5)
    return DynamicHead(small_transformer(), Adapter(small_transformer(), config))


def adapted() -> Adapted:
    config = AdaptedConfig(every=3, rank=3, learning_rate=0.5)
    return Adapted(AdaptedHead(SharedHead(SMALL["lstm"]), config))
