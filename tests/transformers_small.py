"""Transformers small enough to test with, their weights and their pieces made on the spot."""

from functools import cache
from pathlib import Path
from typing import Any

import torch

from unbounded.lm import Pretrained, TransformerConfig, from_transformers

FAMILIES = ("gpt2", "neox", "llama", "qwen")

TEXT = "the cat sat on the mat\nthe dog ate the cat's food\nit rains, it pours; naïve 12 dogs\n"


@cache
def tokenizer(size: int = 300) -> Any:
    """Byte pairs learned from three lines."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXT.splitlines(keepends=True), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|endoftext|>")


def network(
    family: str, size: int, seed: int = 3, positions: int = 64, width: int | None = None
) -> Any:
    """Two layers of sixteen, with weights large enough that words make a difference."""
    import transformers

    torch.manual_seed(seed)
    ends = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    shape: dict[str, Any] = {
        "vocab_size": size,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 32,
        "max_position_embeddings": positions,
        "initializer_range": 0.3,
        **ends,
    }
    match family:
        case "gpt2":
            config: Any = transformers.GPT2Config(
                vocab_size=size,
                n_positions=positions,
                n_embd=width or 16,
                n_layer=2,
                n_head=1 if width else 4,
                initializer_range=0.3,
                **ends,
            )
            made: Any = transformers.GPT2LMHeadModel(config)
        case "neox":
            made = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**shape))
        case "llama":
            shape["num_key_value_heads"] = 2
            made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
        case "qwen":
            shape["num_key_value_heads"] = 2
            made = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shape))
        case _:
            raise ValueError(family)
    return made.eval()


def pretrained(
    family: str = "gpt2", config: TransformerConfig = TransformerConfig(context=24, keep=6)
) -> Pretrained:
    """One of them as ours."""
    pieces = tokenizer()
    return from_transformers(network(family, len(pieces)), pieces, config)


def saved(folder: Path, family: str = "gpt2", seed: int = 3) -> Path:
    """One of them as a folder that `from_pretrained` opens."""
    pieces = tokenizer()
    network(family, len(pieces), seed).save_pretrained(folder)
    pieces.save_pretrained(folder)
    return folder
