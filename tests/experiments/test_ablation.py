"""What `full` loses without each part, and what the part costs."""

from experiments.ablation import PARTS, ablation_lines
from unbounded.presets import PRESETS as ROWS


def test_every_expert_but_the_uniform_is_left_out_once_alone() -> None:
    alone = {left_out[0] for left_out in PARTS.values() if len(left_out) == 1}
    # Of closed models it is the adapted output layer that learns.
    assert alone == {*ROWS["full"], "adapted"} - {"uniform"}


def test_a_line_goes_without_its_part_and_nothing_else() -> None:
    lines = ablation_lines()
    assert lines["full"].experts == ROWS["full"]
    parts = {part: names for part, names in PARTS.items() if names != ("adapted",)}
    assert lines.keys() == {"full", *parts}
    for part, left_out in parts.items():
        assert set(lines[part].experts) == set(ROWS["full"]) - set(left_out)
        assert lines[part].gated == (part != "weights that depend on the state")
