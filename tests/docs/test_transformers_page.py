"""The figures on the page of transformers are those of the committed results."""

from pathlib import Path

from experiments.transformers.table import tables


def test_the_tables_are_drawn_from_the_results() -> None:
    page = Path(__file__).parents[2] / "docs" / "transformers.md"
    assert tables() in page.read_text(encoding="utf-8")
