import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments import charts
from experiments.charts import reading_curves
from experiments.contents import pictures
from experiments.figures import (
    DOMAINS,
    LOOKS,
    by_neighbors,
    by_words,
    draw_neighbors,
    draw_words,
)
from experiments.results import Found, find_results
from experiments.tables import TITLES
from tests.experiments.made_up import keep, keep_all, neighbors_result, rows_result
from unbounded.errors import MissingExtra
from unbounded.evaluation.figures import write_figure


def test_every_domain_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(DOMAINS)
    assert len(set(LOOKS.values())) == len(LOOKS)


def test_there_is_a_line_a_domain_that_has_results(tmp_path: Path) -> None:
    keep(tmp_path, "figure1-paper", neighbors_result("web"), neighbors_result("books", 0.2))
    found = find_results(tmp_path, "figure1", "paper")
    curves = by_neighbors(found)
    assert [curve.domain for curve in curves] == ["web", "books"]
    assert list(curves[1].x) == [1, 2, 4, 8, 16]
    assert curves[1].y == pytest.approx((0, -0.2, -0.4, -0.6, -0.8))
    legend = draw_neighbors(found).axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["web", "books"]


def test_without_results_nothing_is_drawn(tmp_path: Path) -> None:
    none = find_results(tmp_path, "figure1", "paper")
    assert draw_neighbors(none) is draw_words([none]) is None
    assert pictures(tmp_path) == []


def test_a_point_of_figure_2_is_the_mean_over_the_latter_half_of_what_was_read() -> None:
    result = rows_result("news-2007", "web")
    (curve,) = by_words([Found("table3", {("news-2007", "web"): result})])
    nats = [math.log(a / b) for a, b in ((150, 180), (120, 170), (110, 160), (100, 150))]
    assert list(curve.x) == [
        400,
        700,
        1_000,
        1_100,
    ]  # 100 words were read before the first was scored
    assert curve.y == pytest.approx(
        (nats[0], nats[1], nats[2], (300 * nats[2] + 100 * nats[3]) / 400)
    )


def test_figure_2_takes_the_longest_curve_of_a_domain() -> None:
    short, long = (rows_result("news-2007", "books") for _ in range(2))
    long["curve"] = {name: values + values[-1:] for name, values in long["curve"].items()}
    long["curve"]["tokens"][-1] = 2_000
    # Fixed weights that were fitted elsewhere are no words of this text.
    long["fitted_in"] = "news-2007"
    found = [
        Found("table3", {("news-2007", "books"): short, ("news-2007", "web"): short}),
        Found("figure2", {("news-2007", "books"): long}),
    ]
    curves = {curve.domain: curve for curve in by_words(found)}
    assert list(curves) == ["web", "books"]
    assert curves["books"].x[-1] == 2_000
    assert curves["web"].x[-1] == 1_100


def test_a_single_point_can_be_drawn(tmp_path: Path) -> None:
    result = rows_result("news-2007", "web")
    result["curve"] = {name: values[:1] for name, values in result["curve"].items()}
    figure = draw_words([Found("table3", {("news-2007", "web"): result})])
    ElementTree.parse(write_figure(figure, tmp_path / "one.svg"))


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = Found("figure1", {("news-2007", "web"): neighbors_result("web")})
    with pytest.raises(MissingExtra, match=r"unbounded\[report\]"):
        draw_neighbors(found)


def test_a_curve_of_perplexities_is_over_the_words_since_the_point_before() -> None:
    curve = reading_curves(rows_result("news-2007", "web"))["unigram"]
    assert curve[0] == [300, 600, 900, 1_000]
    assert curve[1] == pytest.approx([180.0, 170.0, 160.0, 150.0])
    assert reading_curves({}) == {}


def test_every_picture_is_drawn_and_every_row_can_be_told_without_color(tmp_path: Path) -> None:
    keep_all(tmp_path)
    drawn = {picture.name: picture.draw() for picture in pictures(tmp_path)}
    assert drawn.keys() == {
        *("figure1", "figure2"),
        *("reading-near", "reading-far", "costs", "ladder", "parts"),
    }
    for name, figure in drawn.items():
        ElementTree.parse(write_figure(figure, tmp_path / f"{name}.svg"))
    looks = list(charts.LOOKS.values())
    assert len({(str(dashes), marker) for _, dashes, marker in looks}) == len(looks)
    assert set(charts.LOOKS) == set(TITLES) - {"recipe_static"}  # No curve of its own.
