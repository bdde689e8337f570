from itertools import pairwise
from pathlib import Path

import pytest

from experiments import paper
from experiments.ablation import ablation_grid
from experiments.instead import instead_grid
from experiments.ladder import STEPS, ladder_grid, ladder_lines
from experiments.markup import markdown
from experiments.results import EDITION, EDITIONS, Found, find_results, find_table
from experiments.tables import (
    kernels_grid,
    neighbors_grid,
    perplexity_grid,
    seconds_grid,
    vocabulary_grid,
)
from tests.experiments.made_up import (
    ablation_result,
    bits_result,
    keep,
    ladder_result,
    neighbors_result,
    recipe_result,
    rows_result,
    vocabulary_result,
)
from unbounded.evaluation.tables import Grid


def cells(grid: Grid, heading: str, whose: str) -> list[str]:
    """The entries of the first line with this heading, remarks in brackets."""
    for part in grid.parts:
        for line in part.lines:
            if line.heading == heading and line.entries[0].text == whose:
                return [f"{entry.text} {entry.remark}".strip() for entry in line.entries[1:]]
    raise AssertionError(f"no line {heading!r}, {whose!r}")


def table2(folder: Path) -> Grid:
    return perplexity_grid(find_results(folder, "table2", "paper"), paper.TABLE2, "Table 2")


def test_the_paper_s_numbers_are_the_paper_s() -> None:
    assert paper.TABLE1["news-2007", "web"]["size"] == 321_072
    assert paper.TABLE1["news-2007", "books"]["oov_percent"] == 3.7
    assert paper.TABLE2["news-2007", "news-2007"]["static"] == 220.9
    assert paper.TABLE2["news-2007", "news-2011"]["unbounded"] == 214.3
    assert paper.TABLE3["news-2007", "wiki"]["unbounded"] == 337.4
    assert paper.TABLE3["web", "news-2008"]["local"] == 531.4
    assert paper.TABLE3["wiki", "books"]["unigram"] == 346.9
    assert paper.TABLE4["news-2007", "books"]["unbounded"] == 562
    assert (len(paper.TABLE1), len(paper.TABLE2)) == (8, 5)
    assert (len(paper.TABLE3), len(paper.TABLE4)) == (12, 5)


def test_each_change_is_over_the_static_of_the_same_source(tmp_path: Path) -> None:
    keep(tmp_path, "table2-paper", rows_result("news-2007", "news-2007", 100.0))
    grid = table2(tmp_path)
    title = "static + unbounded cache"
    # "the unbounded cache brings a 24.6% improvement relative to the static model"
    assert cells(grid, title, "paper")[0] == "166.5 −24.6%"
    assert cells(grid, title, "ours, online")[0] == "60.0 −40.0%"
    assert cells(grid, title, "ours, fixed")[0] == "66.0 −40.0%"
    assert cells(grid, "static", "ours, online")[0] == "100.0"
    assert cells(grid, "all together", "ours, online")[0] == "50.0 −50.0%"
    with pytest.raises(AssertionError, match="no line"):
        cells(grid, "all together", "paper")


def test_a_cell_without_a_result_is_a_dash_and_no_experiment_is_blank(tmp_path: Path) -> None:
    keep(tmp_path, "table3-paper", rows_result("news-2007", "web", 50.0))
    found = find_results(tmp_path, "table3", "paper")
    grid = perplexity_grid(found, paper.TABLE3, "Table 3")
    assert grid.head == ("model", "", "news 2008", "commentary", "web", "wiki", "books")
    assert [part.title for part in grid.parts] == [
        *("trained on news 2007", "trained on web", "trained on wiki")
    ]
    assert cells(grid, "static", "ours, online") == ["", "–", "50.0", "–", "–"]
    assert cells(grid, "static", "paper") == ["", "342.7", "689.3", "1,003.2", "687.1"]
    # Without any result the paper's numbers stand alone.
    assert cells(table2(tmp_path), "static", "paper")[0] == "220.9"
    assert cells(table2(tmp_path), "all together", "ours, fixed") == ["–"] * 5
    assert table2(tmp_path).notes == ("No results yet.",)


def test_the_latest_result_of_a_cell_wins_and_a_torn_line_does_not_count(tmp_path: Path) -> None:
    path = keep(
        tmp_path,
        "table2-paper",
        rows_result("news-2007", "news-2008", 100.0, commit="old0000"),
        rows_result("news-2007", "news-2009", 300.0),
        rows_result("news-2007", "news-2008", 110.0, commit="new0000", changed=True),
    )
    with path.open("a", encoding="utf-8") as file:
        file.write('{"cell": {"train": "news-2007", "test": "news-2009"}, "tok')
    grid = table2(tmp_path)
    assert cells(grid, "static", "ours, online") == ["–", "110.0", "300.0", "–", "–"]
    assert "Commits: abc1234, new0000+ (+: with changes not committed)." in grid.notes[0]
    assert "old0000" not in grid.notes[0]


def test_the_notes_say_scale_training_and_words(tmp_path: Path) -> None:
    keep(
        tmp_path,
        "table2-small",
        rows_result("news-2007", "news-2008"),
        rows_result("news-2007", "news-2009", tokens=900),
    )
    found = find_results(tmp_path, "table2", "paper", "small")
    note, _ = perplexity_grid(found, paper.TABLE2, "Table 2").notes
    assert "Scale “small”: trained on 2,000 words, 3 epochs." in note
    assert "Test words a cell: 900 to 1,000." in note
    assert "fitted on 100 words before those" in note


def test_seconds_are_scaled_to_ten_million_words(tmp_path: Path) -> None:
    keep(tmp_path, "table4-paper", rows_result("news-2007", "books"))
    grid = seconds_grid(find_results(tmp_path, "table4", "paper"))
    lines = {line.heading: [] for line in grid.parts[0].lines}  # type: dict[str, list[list[str]]]
    for line in grid.parts[0].lines:
        lines[line.heading].append([f"{e.text} {e.remark}".strip() for e in line.entries])
    assert lines["books"] == [
        ["paper", "81", "–", "626 ×7.7", "562 ×6.9", "–"],
        # half a second for 1,000 words
        ["ours", "5,000", "5,556 ×1.1", "6,250 ×1.2", "8,333 ×1.7", "10,000 ×2.0"],
    ]
    assert lines["web"][1] == ["ours", *"–––––"]
    assert "3 cores, slate" in grid.notes[0]


def test_sizes_and_oov_words_stand_beside_the_paper_s(tmp_path: Path) -> None:
    keep(tmp_path, "table1-paper", vocabulary_result("wiki"))
    grid = vocabulary_grid(find_results(tmp_path, "table1", "paper"))
    lines = {line.heading: [entry.text for entry in line.entries] for line in grid.parts[0].lines}
    assert lines["wiki"] == ["191,554", "8,888", "777", "5.5%", "4.6%", "1,000"]
    assert lines["books"] == ["174,037", "–", "–", "3.7%", "–", "–"]


def test_neighbors_and_kernels_are_differences_with_unigram(tmp_path: Path) -> None:
    thin = neighbors_result("books")
    del thin["lines"]["k 16"], thin["family"]
    keep(tmp_path, "figure1-paper", neighbors_result("web"), thin)
    found = find_results(tmp_path, "figure1", "paper")
    grid = neighbors_grid(found)
    assert grid.head == ("k", "web", "books")
    assert [entry.text for entry in grid.parts[0].lines[-1].entries] == ["−0.400", "–"]
    gaussian, mixed, epanechnikov = kernels_grid(found).parts
    assert [line.heading for line in gaussian.lines] == [f"{2**i}" for i in range(8)]
    assert gaussian.lines[0].entries[0].text == "−9.5%"  # e^−0.1 − 1
    assert [entry.text for entry in mixed.lines[0].entries] == ["−39.3%", "–"]
    assert epanechnikov.lines[0].entries[0].text == "−4.9%"


def test_the_ablation_says_the_loss_and_the_cost(tmp_path: Path) -> None:
    keep(tmp_path, "ablation-paper", ablation_result("web"))
    text = markdown(ablation_grid(find_results(tmp_path, "ablation", "paper")))
    assert "| all together | 100.0 |" in text
    assert "| without unigram | 101.0 (+1.0%) | 1.0 |" in text
    assert "| without n-grams | 110.0 (+10.0%) | 5.0 |" in text
    assert "| without weights that depend on the state | 102.5 (+2.5%) |" in text


def test_what_one_would_use_instead_is_one_table(tmp_path: Path) -> None:
    keep(tmp_path, "instead-paper", bits_result("web"), bits_result("wiki", 0.5))
    smol = {"name": "full", "bits_per_character": 0.9, "seconds": 3.0}
    transformer = {
        "cell": {"model": "smollm2", "domain": "wiki"},
        "result": {"words": 1_000, "rows": [smol]},
    }
    others = keep(tmp_path, "cells", transformer)
    text = markdown(instead_grid(find_results(tmp_path, "instead", "paper"), others))
    assert "| xz -9e | 2.000 | 0.500 | 2 | 7 MB | 1,000 |" in text
    assert "| all together | 1.100 | 1.100 | 1,000 | – | 1,000 |" in text
    assert "| SmolLM2-135M, all together | – | 0.900 | 3,000 | – | 1,000 |" in text
    assert "perplexity" not in text


def test_every_step_of_the_ladder_has_a_line_that_measures_it(tmp_path: Path) -> None:
    for step in STEPS:
        assert step.line in ladder_lines()
    # One change a step: no two are the same, and experts only come.
    lines = ladder_lines()
    mixed = [lines[step.line].experts for step in STEPS[6:]]
    assert all(set(a) <= set(b) for a, b in pairwise(mixed))
    assert len({(step.line, step.key, step.training) for step in STEPS}) == len(STEPS)
    keep(tmp_path, "ladder-paper", ladder_result("wiki"))
    keep(tmp_path, "table3-paper", recipe_result("wiki"), recipe_result("web"))
    text = markdown(ladder_grid(tmp_path, "paper"))
    assert "| the paper’s settings | 400.0 |" in text
    assert "| weights learned as it reads | 97.0 (−50.8%) |" in text
    assert "| beside: the network alone, by the paper’s words | 500.0 |" in text
    keep(tmp_path, "table3-paper", recipe_result("wiki") | {"tokens": 9_000})
    assert "| the paper’s settings | – |" in markdown(ladder_grid(tmp_path, "paper"))


def test_the_paper_s_recipe_stands_beside_over_its_own_network(tmp_path: Path) -> None:
    recipe = recipe_result("wiki") | {"edition": 0}  # It has no editions.
    later = recipe_result("books") | {"edition": EDITION}
    ours = (rows_result("news-2007", test, edition=EDITION) for test in ("wiki", "web"))
    keep(tmp_path, "table3-paper", *ours, recipe, later)
    grid = perplexity_grid(find_table(tmp_path, "table3", "paper"), paper.TABLE3, "Table 3")
    title = "static + unbounded cache, the paper’s recipe"
    assert cells(grid, title, "ours, fixed") == ["", "–", "–", "400.0 −20.0%", "–"]
    assert cells(grid, "static, the paper’s recipe", "ours, online")[3] == "250.0"
    assert cells(grid, "static", "ours, online")[2:4] == ["200.0", "200.0"]
    (note,) = grid.notes
    assert "Cells with a result: 2." in note
    assert note.endswith("The paper’s recipe: 10 epochs, commit abc1234.")


def test_text_is_escaped_and_the_lowest_of_each_source_marked(tmp_path: Path) -> None:
    keep(tmp_path, "table2-paper", rows_result("news-2007", "news-2008", 100.0, commit="a_<b>"))
    plain = markdown(table2(tmp_path))
    assert "a_\\<b>" in plain
    for best in ("**191.4** (−19.4%)", "**50.0** (−50.0%)", "**55.0** (−50.0%)"):
        assert best in plain
    assert plain.count("| **") == 5 + 2
    assert plain.count("| static |") == 1


def test_each_cell_is_of_the_largest_scale_that_has_it(tmp_path: Path) -> None:
    small = (rows_result("news-2007", f"news-{year}", 1.0) for year in (2008, 2009))
    keep(tmp_path, "table2-medium", *small)
    keep(tmp_path, "table2-paper", rows_result("news-2007", "news-2008", 2.0, tokens=9_000))
    found = find_results(tmp_path, "table2", "medium", "paper")
    assert {test: each["scale"] for (_, test), each in found.cells.items()} == {
        "news-2008": "paper",
        "news-2009": "medium",
    }
    grid = perplexity_grid(found, paper.TABLE2, "Table 2")
    assert cells(grid, "words scored", "ours") == ["–", "9,000", "1,000", "–", "–"]
    assert "Scale “medium”, “paper”" in grid.notes[0]
    assert find_results(tmp_path, "none", "paper", "small") == Found("none", {})


def test_a_table_says_which_results_are_of_an_earlier_edition(tmp_path: Path) -> None:
    old = rows_result("news-2007", "news-2008", commit="old0000")
    keep(tmp_path, "table2-paper", old)
    _, said = table2(tmp_path).notes
    assert said == f"Measured at old0000, before {'; '.join(EDITIONS.values())}."
    assert sorted(EDITIONS) == list(range(1, EDITION + 1))
    # Once there is one of today, no table mixes the two, whatever the scale.
    keep(tmp_path, "table2-small", rows_result("news-2007", "news-2009", edition=EDITION))
    found = find_results(tmp_path, "table2", "small", "paper")
    assert [test for _, test in found.cells] == ["news-2009"]
    assert len(perplexity_grid(found, paper.TABLE2, "Table 2").notes) == 1
