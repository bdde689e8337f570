from pathlib import Path

from experiments.dynamic_evaluation import dynamic_grid
from experiments.markup import markdown
from experiments.results import find_results
from tests.experiments.made_up import dynamic_result, keep, rows_result


def drawn(folder: Path) -> str:
    return markdown(dynamic_grid(find_results(folder, "dynamic", "paper")))


def test_perplexity_and_time_of_both_and_the_lower_is_bold(tmp_path: Path) -> None:
    keep(tmp_path, "dynamic-paper", dynamic_result("wiki"), dynamic_result("web", 150.0))
    text = drawn(tmp_path)
    assert "| | wiki | 300.0 | **200.0** | −33.3% | 200 | 100 | 2.0 |" in text
    assert "| news 2007 | web | **150.0** | 200.0 | +33.3% | 200 | 100 | 2.0 |" in text


def test_a_cell_without_both_is_left_out(tmp_path: Path) -> None:
    keep(tmp_path, "dynamic-paper", rows_result("news-2007", "wiki"))
    assert "wiki |" not in drawn(tmp_path)


def test_without_results_it_says_so(tmp_path: Path) -> None:
    assert "No results yet" in drawn(tmp_path)
