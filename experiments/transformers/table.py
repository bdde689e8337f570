"""Print the table of docs/transformers.md from the results; runs no model.

python -m experiments.transformers.table
"""

import json
from pathlib import Path
from typing import Any

from experiments.markup import markdown
from unbounded.evaluation.tables import MISSING, change, plain

RESULTS = Path(__file__).parents[1] / "results" / "transformers" / "cells.jsonl"

TITLES = {
    "static": "the network alone",
    "knnlm": "+ kNN-LM as published",
    "knnlm-tuned": "+ kNN-LM tuned",
    "unbounded": "+ unbounded cache",
    "full": "all together",
}


def tables(path: Path = RESULTS) -> str:
    """One table a model: perplexity a piece, the change, and a word in brackets.

    Of what was measured again the last counts; a row that was not stays as it was.
    """
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cell = json.loads(line)
        before = latest.setdefault(
            tuple(cell["cell"][key] for key in ("model", "domain", "words", "first", "key")), cell
        )
        rows = {row["name"]: row for each in (before, cell) for row in each["result"]["rows"]}
        before["result"]["rows"] = list(rows.values())
    cells = list(latest.values())
    models = dict.fromkeys(cell["cell"]["model"] for cell in cells)
    return "\n\n".join(
        _table([cell for cell in cells if cell["cell"]["model"] == model]) for model in models
    )


def _table(cells: list[dict[str, Any]]) -> str:
    lines = []
    for name, title in TITLES.items():
        found = [_row(cell, name) for cell in cells]
        if any(found):
            lines.append((title, [entry or MISSING for entry in found]))
    return markdown(plain("", [cells[0]["cell"]["model"], *map(_head, cells)], lines))


def _head(cell: dict[str, Any]) -> str:
    words, first = cell["result"]["words"], cell["cell"]["first"]
    return f"{cell['cell']['domain']}, {words:,} words after {first:,}"


def _row(cell: dict[str, Any], name: str) -> str:
    rows = {row["name"]: row for row in cell["result"]["rows"]}
    if name not in rows:
        return ""
    value, a_word = rows[name]["perplexity"], rows[name]["perplexity_per_word"]
    over = change(value, rows["static"]["perplexity"]).replace("%", " %")
    said = "" if name == "static" else f" ({over})"
    return f"{value:,.2f}{said}, a word {a_word:,.1f}"


if __name__ == "__main__":
    print(tables())
