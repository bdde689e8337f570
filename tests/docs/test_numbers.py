"""Measured numbers on the pages are in a file of results, and say if they are of before.

A measured number is a decimal or a percentage in a table, or in a sentence that says "perplexity",
on a page of what is (the log and the decisions are history, and say themselves how they measured);
times and bytes are the benchmarks'. It must be in one of the page's files as it is, rounded, as a
percentage, or as the change of a row over `static` of the same result. What is between the markers
of a page is drawn, and test_reproduce_page.py holds it to the results.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import default_model, keystrokes, recognition
from experiments.page import BEGIN, END
from experiments.results import EDITION
from experiments.transformers.table import tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
HISTORY = {"log.md", "decisions.md", "cli.md"}
"""The page of the command line is made from its help."""

SOURCES = {
    "README.md": ["transformers/cells.jsonl"],
    "default-model.md": ["../../unbounded/default_model/card.json"],
    "how-it-works.md": ["hostile.json"],
    "keyboards.md": ["keystrokes.json"],
    "logs.md": ["logs.json"],
    "questions.md": ["transformers/cells.jsonl"],
    "recognition.md": ["recognition.json", "rescoring-time.json"],
    "transformers.md": ["transformers/cells.jsonl"],
}
"""Which results a page may speak of outside its markers."""

PAGES = sorted(
    [ROOT / "README.md", *(p for p in (ROOT / "docs").glob("*.md") if p.name not in HISTORY)]
)
NUMBER = re.compile(
    r"(?<![\w.,])[-−+]?(\d[\d,]*\.\d+|\d+(?= ?%))(?![\w.]*\w)( ?%)?(?! ?(?:[kMG]?B|[mµ]?s|times)\b)"
)


def drawn(page: Path) -> list[str]:
    """The tables of a page that a script has printed from its results."""
    draw: dict[str, list[Callable[[dict[str, Any]], str]]] = {
        "transformers.md": [lambda found: tables()],
        "default-model.md": [default_model.table],
        "keyboards.md": [keystrokes.table],
        "recognition.md": [recognition.table, recognition.differences],
    }
    found = draw.get(page.name, [])
    return [each(next(results(RESULTS / SOURCES[page.name][0]))) for each in found]


@pytest.mark.parametrize("name", ["transformers", "default-model", "keyboards", "recognition"])
def test_printed_tables_are_those_of_the_results(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    for table in drawn(page):
        assert table in page.read_text(encoding="utf-8")


def measured(text: str) -> Iterator[tuple[str, str]]:
    """Every number that claims to be a result, and the line or sentence it stands in."""
    text = re.sub(f"{BEGIN}.*?{END}", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    rows = [line for line in lines if line.startswith("|")]
    prose = " ".join(line for line in lines if not line.startswith("|"))
    said = [each for each in re.split(r"(?<=[.:;])\s", prose) if "perplexity" in each]
    for part in (*rows, *said):
        for found in NUMBER.finditer(part):
            yield found[0].strip("+-−"), part


def results(path: Path) -> Iterator[Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        yield from map(json.loads, text.splitlines())
    else:
        yield json.loads(text)


def known(value: Any) -> Iterator[float]:
    """The numbers of a result, and the changes of its rows over static."""
    if isinstance(value, dict):
        rows = value.get("rows")
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            for row in rows:
                for key in ("perplexity", "perplexity_per_word"):
                    if key in row:
                        yield row[key] / rows[0][key] - 1
        for each in value.values():
            yield from known(each)
    elif isinstance(value, list):
        for each in value:
            yield from known(each)
    elif isinstance(value, int | float) and math.isfinite(value):
        yield value


def bears_out(said: str, values: list[float]) -> bool:
    """Whether a number is one of these, as it is rounded there.

    >>> bears_out("24.6%", [-0.2463]), bears_out("1,000.5", [1000.46]), bears_out("7.2", [7.3])
    (True, True, False)
    """
    digits = said.replace(",", "").removesuffix("%").strip()
    places = len(digits.partition(".")[2])
    # A percentage is kept as a share, and points of a percentage too.
    scales = (100,) if "%" in said else (1, 100)
    return any(f"{abs(value) * scale:.{places}f}" == digits for value in values for scale in scales)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_measured_number_is_in_a_result(page: Path) -> None:
    values = [
        number
        for name in SOURCES.get(page.name, ())
        for result in results(RESULTS / name)
        for number in known(result)
    ]
    text = page.read_text(encoding="utf-8")
    for table in drawn(page):
        text = text.replace(table, "")
    missing = [
        f"{number} in “{part.strip()[:120]}”"
        for number, part in measured(text)
        if not bears_out(number, values)
    ]
    assert not missing, f"{page.name} says what no result says: {missing}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in SOURCES])
def test_results_of_an_earlier_edition_are_said_to_be(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    old = {
        result["commit"]
        for name in SOURCES[page.name]
        for result in results(RESULTS / name)
        if result.get("edition", 0) < EDITION and "commit" in result
    }
    for commit in old:
        said = re.search(rf"[Mm]easured at [^.;]*\b{commit}\b[^.;]*,\s+before", text)
        assert said, f"{page.name} does not say: measured at {commit}, before …"


def test_a_number_that_nobody_measured_is_found() -> None:
    made_up = "| a | 123.4 (−56.7%) |\n\nIts perplexity is 99.9. It took 3.5 s.\n    0.1\n`0.2`\n"
    assert [number for number, _ in measured(made_up)] == ["123.4", "56.7%", "99.9"]
    assert not bears_out("123.4", [123.3, 0.567])
    assert bears_out("123.4", [123.44])
    assert bears_out("56.7%", [-0.567])
