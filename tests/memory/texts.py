"""A model small enough to think about, its memories, and texts for them."""

from pathlib import Path
from typing import Any

import numpy as np

import unbounded
from tests.toy import ToyModel
from unbounded.corpus import Tokenizer, Vocabulary
from unbounded.lm import Pretrained
from unbounded.memory import Memory
from unbounded.presets import MemoryConfig
from unbounded.store import Store

KNOWN = [f"known{i}" for i in range(11)]
NEW = [f"new{i}" for i in range(30)]
FIRST_EDITION = ["static", "uniform", "unigram", "ngram", "cache_128", "cache_1024", "unbounded"]
"""What memories were made of before words had a limit, and were spelled."""
CONFIG = MemoryConfig(index="flat", k=8, window=16)
PLACE: dict[str, str] = {}
"""Where memories are opened, if not on disk alone (`conftest.py`)."""
ON_SHARDS = {"engine": "here://local?shards=3"}


def toy_model(seed: int = 0) -> Pretrained:
    """A network that needs no torch, with a vocabulary and a tokenizer."""
    lm = ToyModel(base_size=len(KNOWN) + 1, width=5, seed=seed)
    config = {"network": "toy", "checksums": {"seed": seed}}
    return Pretrained(lm, Vocabulary(KNOWN), Tokenizer(), config, ())


def open_toy(folder: Path, model: Pretrained | None = None, **more: Any) -> Memory:
    return unbounded.open(folder, model or toy_model(), **{"config": CONFIG, **PLACE, **more})


def some_text(lines: int, seed: int = 0, words: list[str] | None = None) -> str:
    """Lines of one to twelve words, of which some are known and some are not."""
    random = np.random.default_rng(seed)
    choice = np.array(words or [*KNOWN, *NEW])
    return "\n".join(" ".join(random.choice(choice, random.integers(1, 13))) for _ in range(lines))


def words_of(text: str) -> list[str]:
    return [word for line in text.split("\n") for word in [*line.split(), "</s>"]]


def state_of(memory: Memory) -> dict[str, bytes]:
    """Everything that a memory knows, to the bit."""
    state = memory.backend.learned.state()
    return {
        name: (str(part.shape) + str(part.dtype)).encode() + part.tobytes()
        for name, part in state.items()
        # Under which name shards saved it is nobody's knowledge.
        if not name.endswith("saved.header")
    }


def store_of(memory: Memory) -> Store:
    """The files of a memory on disk."""
    store = memory.backend.store
    assert isinstance(store, Store)
    return store
