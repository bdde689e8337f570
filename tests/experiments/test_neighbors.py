"""Figure 1's reading: every word is remembered, some blocks are scored, and it can be resumed."""

from pathlib import Path

import numpy as np

from experiments.neighbors import ASKED, Nearest
from unbounded.lm import load_model

WORDS = [f"w{(7 * i * i) % 41}" for i in range(900)]


def test_scored_blocks_lie_evenly_and_remember_all_before() -> None:
    model = load_model(Path("default"))
    every, third = Nearest(model, 30_000, 1), Nearest(model, 30_000, 3)
    for run in (every, third):
        for start in range(0, 900, 100):
            run.read(WORDS[start : start + 100])
    assert every.to_json()["scored"] == 900
    assert third.to_json()["scored"] == 300
    assert third.to_json()["tokens"] == 900
    assert third.to_json()["lines"].keys() == ASKED.keys()


def test_a_state_that_is_loaded_goes_on_with_the_same_digits() -> None:
    model = load_model(Path("default"))
    whole, first, then = (Nearest(model, 30_000, 2) for _ in range(3))
    blocks = [WORDS[start : start + 100] for start in range(0, 900, 100)]
    for block in blocks:
        whole.read(block)
    for block in blocks[:4]:
        first.read(block)
    then.load({name: np.array(array) for part in first.parts() for name, array in part.items()})
    for block in blocks[4:]:
        then.read(block)
    assert then.to_json() == whole.to_json()
