"""What `full` loses without each part, and what the part costs."""

import numpy as np
import pytest

from experiments.ablation import PARTS, Ablation
from tests.evaluation.stream import WIDTH, Keeper, evaluate, some_words
from unbounded.mixture import Gated, Online
from unbounded.presets import PRESETS as ROWS


def test_every_expert_but_the_uniform_is_left_out_once_alone() -> None:
    alone = {left_out[0] for left_out in PARTS.values() if len(left_out) == 1}
    # Of closed models it is the adapted output layer that learns.
    assert alone == {*ROWS["full"], "adapted"} - {"uniform"}


def test_a_mixture_without_a_part_is_what_a_mixture_of_the_others_gives() -> None:
    ablation, keeper = Ablation(WIDTH), Keeper()
    evaluate(some_words(300), ("unigram", "full"), cuts=(100, 150), watchers=(ablation, keeper))
    found = ablation.to_json()
    parts = {part: names for part, names in PARTS.items() if names != ("adapted",)}
    assert found["without"].keys() == parts.keys()
    assert found["seconds"].keys() >= set(ROWS["full"])
    for part, left_out in parts.items():
        kept = [name for name in ROWS["full"] if name not in left_out]
        mixture = Gated(len(kept), groups=[WIDTH]) if left_out else Online(len(kept))
        nats = 0.0
        for reading in (block.reading for block in keeper.blocks):
            columns = reading.table[:, [reading.experts.index(name) for name in kept]]
            prob = mixture.score(columns, reading.hidden if left_out else None).prob
            nats -= float(np.log(prob).sum())
        assert found["without"][part] == pytest.approx(np.exp(nats / 300))
