"""What `full` loses without each part, and what the part costs."""

from pathlib import Path

import numpy as np
import pytest

from experiments.ablation import PARTS, Ablation, ablation_grid
from experiments.markup import markdown
from experiments.results import find_results
from tests.evaluation.stream import WIDTH, Keeper, evaluate, some_words
from tests.experiments.made_up import ablation_result, keep
from unbounded.mixture import Gated, Online
from unbounded.presets import PRESETS as ROWS


def test_the_table_says_the_loss_and_the_cost(tmp_path: Path) -> None:
    keep(tmp_path, "ablation-paper", ablation_result("web"))
    text = markdown(ablation_grid(find_results(tmp_path, "ablation", "paper")))
    assert "| all together | 100.0 |" in text
    assert "| without unigram | 101.0 (+1.0%) | 1.0 |" in text
    assert "| without both n-grams | 110.0 (+10.0%) | 5.0 |" in text
    assert "| without weights that depend on the state | 102.5 (+2.5%) |" in text


def test_without_results_it_says_so(tmp_path: Path) -> None:
    text = markdown(ablation_grid(find_results(tmp_path, "ablation", "paper")))
    assert "No results yet" in text


def test_every_expert_but_the_uniform_is_left_out_once_alone() -> None:
    alone = {left_out[0] for left_out in PARTS.values() if len(left_out) == 1}
    assert alone == set(ROWS["full"]) - {"uniform"}


def test_a_mixture_without_a_part_is_what_a_mixture_of_the_others_gives() -> None:
    ablation, keeper = Ablation(WIDTH), Keeper()
    evaluate(some_words(300), ("unigram", "full"), cuts=(100, 150), watchers=(ablation, keeper))
    found = ablation.to_json()
    assert found["without"].keys() == PARTS.keys()
    assert found["seconds"].keys() >= set(ROWS["full"])
    for part, left_out in PARTS.items():
        kept = [name for name in ROWS["full"] if name not in left_out]
        mixture = Gated(len(kept), groups=[WIDTH]) if left_out else Online(len(kept))
        nats = 0.0
        for reading in (block.reading for block in keeper.blocks):
            columns = reading.table[:, [reading.experts.index(name) for name in kept]]
            prob = mixture.score(columns, reading.hidden if left_out else None).prob
            nats -= float(np.log(prob).sum())
        assert found["without"][part] == pytest.approx(np.exp(nats / 300))
