"""Every number on the page of the reproduction is derived from the results kept beside it."""

from pathlib import Path

import pytest

from experiments.page import BEGIN, END, tables_part

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduce.md"


def test_the_tables_are_what_the_results_say() -> None:
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if BEGIN not in text or END not in text:
        pytest.skip("docs/reproduce.md has no markers for the tables")
    kept = text.partition(BEGIN)[2].partition(END)[0]
    fresh = tables_part(ROOT / "experiments" / "results", PAGE.parent)
    assert kept == f"\n{fresh}", "run: python -m experiments all --draw-only"
