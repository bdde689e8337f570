"""The README's table says what the committed results say."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS = ["news-2007", "news-2008", "news-2011", "wiki", "books"]
ROWS = {
    "static": "static",
    "static + unigram": "unigram",
    "static + local cache": "local",
    "static + unbounded cache": "unbounded",
    "all in one mixture": "full",
}


def test_every_perplexity_in_the_readme_comes_from_a_result() -> None:
    found = {}
    for name in ("table2-paper", "table3-paper"):
        text = (ROOT / "experiments" / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
        for result in map(json.loads, text.splitlines()):
            if result["cell"]["train"] == "news-2007":
                rows = {row["name"]: row["perplexity"] for row in result["rows"]}
                found[result["cell"]["test"]] = rows
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## How well")[1]
    lines = re.findall(r"^\| ([a-z+ ]+?) \| (\d.*) \|$", table, re.MULTILINE)
    assert [title for title, _ in lines] == list(ROWS)
    for title, cells in lines:
        for column, cell in zip(COLUMNS, cells.split(" | "), strict=True):
            said = cell.split(" (")
            perplexity = found[column][ROWS[title]]
            assert said[0] == f"{perplexity:,.1f}"
            if len(said) > 1:
                change = 100 * (perplexity / found[column]["static"] - 1)
                assert said[1] == f"{change:.0f} %)".replace("-", "−")
