"""The model for who has none: small, trained once on the built-in texts, kept for all memories."""

import os
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from pathlib import Path

from unbounded.corpus import Line, Tokenizer, demo_text, read_sentences
from unbounded.jobs import trained_model
from unbounded.lm import (
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    TrainingText,
    training_text,
)

TOKENS = 600_000
NETWORK = NetworkConfig(units=128)
TRAINING = TrainingConfig(epochs=3, learning_rate=0.1, dropout=0.1)


def default_folder() -> Path:
    """Where it is kept: the user's cache directory, `XDG_CACHE_HOME` or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "unbounded" / "default-model-1"


def default_model(
    show: Callable[[Progress, int], None],
    tokens: int = TOKENS,
    network: NetworkConfig = NETWORK,
    training: TrainingConfig = TRAINING,
) -> Pretrained:
    """The default model, trained if it is not there yet; an interrupted training goes on."""

    def text(tokenizer: Tokenizer) -> TrainingText:
        return training_text(read_sentences(_lines(), tokenizer), tokens)

    folder = default_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return trained_model(folder, text, network, training, show)


def _lines() -> Iterator[Line]:
    """Speech and chat by turns, so that it knows a little of both."""
    both = zip_longest(demo_text("sotu", years=range(1945, 2100)), demo_text("chat"))
    return (line for line in chain.from_iterable(both) if line is not None)
