"""The figures on the page of transformers are those of the committed results."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_are_drawn_from_the_results() -> None:
    path = ROOT / "experiments" / "transformers" / "table.py"
    spec = importlib.util.spec_from_file_location("transformers_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "transformers.md").read_text(encoding="utf-8")
    assert module.tables() in page
