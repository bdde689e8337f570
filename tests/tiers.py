"""Which tier a test is in: by its folder and by what its file uses, so that a new one falls right.

    make check   unit and contract tests: no processes, no cluster, no browser, no training
    make test    everything

`integration` marks what only the second runs. `contended` marks what fails now and then on a
machine that others use too, for want of a processor: it is run a second time, and told.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
FOLDERS = frozenset({"benchmarks", "e2e", "experiments", "serve", "torture"})
"""Of these folders below `tests` everything is integration."""
INTEGRATION = re.compile(
    r"\b(subprocess|multiprocessing|playwright|train_model|small_model|SubprocessProxy|make_cli_page)\b"
    r"|importorskip\(\"ray\"\)"
)
"""A file with one of these words is, wherever it lies."""
CONTENDED = re.compile(r"importorskip\(\"ray\"\)|\bplaywright\b")
CONTENDED_NAMES = ("test_latency.py", "test_soak.py", "`/healthz` answers")
"""Parts of a test's id: ceilings on the clock."""
SMALL = 10
"""How many examples of hypothesis are enough for `make check`."""


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""


def markers(path: Path, nodeid: str) -> list[str]:
    """The tiers' markers of a test in that file."""
    if (ROOT / "tests") not in path.parents:
        return []  # doctests
    text = text_of(path)
    found = []
    if path.relative_to(ROOT / "tests").parts[0] in FOLDERS or INTEGRATION.search(text):
        found.append("integration")
    if CONTENDED.search(text) or any(name in nodeid for name in CONTENDED_NAMES):
        found.append("contended")
    return found


def mark(item: pytest.Item) -> None:
    """Put a test into its tier."""
    for name in markers(item.path, item.nodeid):
        item.add_marker(name)
    if item.get_closest_marker("contended") and not item.config.getoption("--torture"):
        item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))


def shrink(item: pytest.Item) -> None:
    """Try few examples, whatever the test asks for."""
    test: Any = getattr(item, "obj", None)
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > SMALL:
        test._hypothesis_internal_use_settings = settings(own, max_examples=SMALL)
