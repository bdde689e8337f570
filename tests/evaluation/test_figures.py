import sys
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.evaluation.stream import evaluate, some_words
from unbounded.evaluation.evaluation import Checkpoint, Point
from unbounded.evaluation.figures import COLORS, draw_training, perplexity_svg, weights_svg
from unbounded.evaluation.rows import Row
from unbounded.lm import Progress
from unbounded.presets import PRESETS as ROWS
from unbounded.presets import PROTOCOLS, experts_for

CURVE = [
    Progress(
        epoch,
        step=epoch,
        words=epoch,
        train_perplexity=900.0 / epoch,
        valid_perplexity=valid,
        seconds=1.0,
    )
    for epoch, valid in ((1, None), (2, 500.0), (3, 450.0))
]


def test_every_row_and_every_expert_has_a_color() -> None:
    each = product(ROWS, PROTOCOLS, (True, False))
    experts = {expert for name, of, text in each for expert in experts_for(name, of, text=text)}
    named = {*ROWS, *experts}
    assert set(COLORS) == named
    assert len(set(COLORS.values())) == len(COLORS)


def test_colors_are_left_to_the_page() -> None:
    evaluation = evaluate(some_words(300), cuts=range(60))
    lines = perplexity_svg(evaluation.curve, evaluation.rows, '"><script>')
    areas = weights_svg(evaluation.curve, evaluation.rows[-1], "areas")
    assert 'aria-label="&quot;&gt;&lt;script&gt;"' in lines
    for row in evaluation.rows:
        assert lines.count(f"var(--{row.name})") >= 2
    for expert in evaluation.rows[-1].experts:
        assert f"var(--{expert})" in areas
    for drawn in (lines, areas):
        assert "currentColor" in drawn
        assert not any(color in drawn for color in COLORS.values())
        assert "#fff" not in drawn


@pytest.mark.parametrize(
    "perplexities",
    [
        [float("inf")],
        [float("inf"), 100.0, 90.0],
        [1.0, 1.0],
        [100.0, 99.0, 98.0],
        [1e6, 10.0, 9.0],
    ],
)
def test_any_perplexities_can_be_drawn(perplexities: list[float]) -> None:
    checkpoints = [
        Checkpoint(10 * n, {"static": Point(value, value, (0.5, 0.5))})
        for n, value in enumerate(perplexities, start=1)
    ]
    drawn = perplexity_svg(checkpoints, [Row("static", ROWS["static"])], "lines")
    ElementTree.fromstring(drawn.replace("xlink:", ""))


@pytest.mark.parametrize(("suffix", "epochs"), [("svg", 3), ("png", 3), ("svg", 1)])
def test_a_training_curve_is_drawn_the_same_every_time(
    tmp_path: Path, suffix: str, epochs: int
) -> None:
    one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    assert draw_training(CURVE[:epochs], one)
    assert draw_training(CURVE[:epochs], other)
    assert one.read_bytes() == other.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_without_matplotlib_no_training_curve_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not draw_training(CURVE, tmp_path / "curve.svg")
    assert list(tmp_path.iterdir()) == []
