"""Which tier a test is in: by its folder and by what its file uses, so that a new one falls right.

    make check   unit and contract tests: no processes, no cluster, no browser, no training
    make test    everything

`integration` marks what only the second runs. `contended` marks what fails now and then on a
machine that others use too, for want of a processor: it is run a second time, and told. What is
promised of memories and their files is never tried twice: broken once is broken.
"""

import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

ROOT = Path(__file__).parents[1]
FOLDERS = frozenset({"benchmarks", "e2e", "experiments", "serve", "torture"})
"""Of these folders below `tests` everything is integration."""
INTEGRATION = re.compile(
    r"\b(subprocess|multiprocessing|playwright|train_model|small_model|SubprocessProxy|make_cli_page)\b"
    r"|importorskip\(\"ray\"\)"
)
"""A file with one of these words is, wherever it lies."""
CONTENDED_FOLDERS = frozenset({"benchmarks", "cluster", "e2e", "serve"})
"""Services, clusters and processes that answer each other, with ceilings on the clock."""
CONTENDED = re.compile(r"importorskip\(\"ray\"\)|\bplaywright\b")
SMALL = 10
"""How many examples of hypothesis are enough for `make check`."""


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""


def markers(path: Path) -> list[str]:
    """The tiers' markers of a test in that file."""
    if (ROOT / "tests") not in path.parents:
        return []  # doctests
    text = text_of(path)
    found = []
    folder = path.relative_to(ROOT / "tests").parts[0]
    if folder in FOLDERS or INTEGRATION.search(text):
        found.append("integration")
    if folder in CONTENDED_FOLDERS or CONTENDED.search(text):
        found.append("contended")
    return found


def mark(item: pytest.Item) -> None:
    """Put a test into its tier."""
    for name in markers(item.path):
        item.add_marker(name)


def run_twice(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test, and if it fails once more with nothing that it shared with others kept."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        # What ends in an error now had its part in the failure, which is told.
        with suppress(Exception):
            item.session._setupstate.teardown_exact(None)
        for report in (report for report in reports if report.failed):
            report.outcome = "rerun"  # type: ignore[assignment]
            item.ihook.pytest_runtest_logreport(report=report)
        time.sleep(2)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def shrink(item: pytest.Item) -> None:
    """Try few examples, whatever the test asks for."""
    test: Any = getattr(item, "obj", None)
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > SMALL:
        test._hypothesis_internal_use_settings = settings(own, max_examples=SMALL)
