"""Verdicts follow from results by rule, and change with them."""

from pathlib import Path

from experiments.claims import CLAIMS, Evidence, claims_grid, verdict
from experiments.markup import markdown
from tests.experiments.made_up import keep, neighbors_result, rows_result
from unbounded.evaluation.tables import Grid


def verdicts(folder: Path) -> dict[str, str]:
    return {line.heading: line.entries[1].text for line in claims_grid(folder).parts[0].lines}


def of(folder: Path, part: str) -> str:
    (found,) = (said for heading, said in verdicts(folder).items() if part in heading)
    return found


def test_without_results_there_are_no_verdicts(tmp_path: Path) -> None:
    assert set(verdicts(tmp_path).values()) == {"no results yet"}
    assert len(verdicts(tmp_path)) == len(CLAIMS)


def test_a_verdict_turns_with_the_figures(tmp_path: Path) -> None:
    far = rows_result("news-2007", "wiki", 300.0)  # local 240, unbounded 180
    keep(tmp_path, "table3-paper", far)
    assert of(tmp_path, "about 3×") == "does not"
    assert of(tmp_path, "performs similarly") == "does not"
    for row in far["rows"]:
        row["perplexity"] = 100.0 if row["name"] in ("local", "unbounded") else row["perplexity"]
    keep(tmp_path, "table3-paper", far)
    assert of(tmp_path, "about 3×") == "holds"
    assert of(tmp_path, "performs similarly") == "holds"


def test_it_holds_in_part_where_it_does_in_some_cells(tmp_path: Path) -> None:
    slow, fast = (rows_result("news-2007", test) for test in ("web", "wiki"))
    for row in fast["rows"]:
        row["seconds_per_token"] = 1.0 if row["name"] == "local" else 0.5
    keep(tmp_path, "table4-paper", slow, fast)
    assert of(tmp_path, "more efficient") == "in part (1 of 2)"
    text = markdown(claims_grid(tmp_path))
    assert "web +33.3%; wiki −50.0%" in text


def test_near_gains_and_neighbors_are_held_to_the_paper_s(tmp_path: Path) -> None:
    keep(tmp_path, "table2-paper", *(rows_result("news-2007", f"news-{y}") for y in (2007, 2009)))
    keep(tmp_path, "figure1-paper", neighbors_result("web"))
    assert of(tmp_path, "24.6") == "holds"  # 40 %
    assert of(tmp_path, "20.44") == "in part (1 of 2)"  # The unigram gains 10 %.
    assert of(tmp_path, "trade-off") == "no results yet"  # Up to 16 neighbors only.
    assert of(tmp_path, "number of test examples") == "no results yet"
    assert verdict([]) == "no results yet"
    assert Evidence.of(tmp_path).words == "1,000"
    assert isinstance(claims_grid(tmp_path), Grid)
