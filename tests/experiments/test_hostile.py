"""Never worse than the network alone, but for what learning whom to believe costs."""

import numpy as np
import pytest

from experiments.hostile import against_static, sampled, texts
from tests.small import recurrent
from unbounded.corpus import SENTENCE_END, Tokenizer, Vocabulary
from unbounded.lm import NetworkConfig, Pretrained
from unbounded.mixture import Fixed
from unbounded.model import OnlineModel
from unbounded.presets import build_preset

WORDS = 1_000
LOST = 20.0
"""Nats, whatever the text: a thousandth of the perplexity of 20,000 words."""

BASE = [SENTENCE_END, *(f"known{i}" for i in range(49))]
RANDOM = np.random.default_rng(0)
MODEL = Pretrained(
    recurrent(len(BASE), NetworkConfig(units=16, cutoffs=(20,)), seed=3),
    Vocabulary(BASE),
    Tokenizer(),
    {"network": "misled", "checksums": {}},
    (),
    text=RANDOM.integers(0, len(BASE), 2_000),
)
NEAR, FAR = (
    [word if lucky < 0.9 else SENTENCE_END for word, lucky in zip(drawn, chance, strict=True)]
    for chance, drawn in (
        (RANDOM.random(WORDS), RANDOM.choice(BASE[1:], WORDS).tolist()),
        (RANDOM.random(WORDS), [f"new{n}" for n in RANDOM.zipf(1.5, WORDS)]),
    )
)


def lost(words: list[str]) -> float:
    """Nats by which everything together is worse than the network alone."""
    static, full = against_static(MODEL, words)
    return float(np.log(full / static)) * len(words)


def test_no_text_costs_more_than_learning_whom_to_believe() -> None:
    for name, words in texts(MODEL, NEAR, FAR):
        assert len(words) == WORDS
        assert lost(words) < LOST, name


def test_a_mixture_that_does_not_learn_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def even(model: Pretrained, preset: str) -> OnlineModel:
        online = build_preset(model, preset)
        online.mixture = Fixed(np.full(len(online.experts), 1 / len(online.experts)))
        return online

    monkeypatch.setattr("experiments.hostile.build_preset", even)
    assert lost(sampled(MODEL, WORDS)) > LOST
