"""A model of a few thousand words, trained once, and a text that it has not seen."""

import tempfile
from functools import cache
from itertools import islice
from pathlib import Path

from tests.lm.test_training import NETWORK
from unbounded.demo import demo_text
from unbounded.lm import Pretrained, TrainingConfig, load_model, train

TEXT = [
    "the zorble ate the grass of the field",
    "she saw the zorble and it saw her",
    "a zorble is a small animal with a long tail",
    "the people of the field don't like the zorble",
    "it eats the grass and sleeps by day",
    "no law of this congress protects the zorble",
    "the president spoke of peace and of the nation",
    "we must have more schools and better roads",
]
"""Sentences in lower case, with a word that nobody knows."""


@cache
def small_folder() -> Path:
    """The folder of a network of 16 units that has read 5,000 words of speeches."""
    folder = Path(tempfile.mkdtemp()) / "model"
    lines = islice(demo_text("sotu", years=range(1950, 1960)), 400)
    config = TrainingConfig(epochs=1, streams=8)
    train(lines, folder, tokens=5_000, network=NETWORK, config=config)
    return folder


@cache
def small_model() -> Pretrained:
    """The model in that folder."""
    return load_model(small_folder())
