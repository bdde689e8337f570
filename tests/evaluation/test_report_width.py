"""The report in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.chromium import CHROMIUM, NO_CHROMIUM, browsing
from tests.evaluation.stream import ROWS, evaluate, some_words
from unbounded.evaluation.report import write_report


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.parametrize("rows", [["static", "unbounded", "full"], [*ROWS]])
def test_no_column_is_hidden_at_any_width(rows: list[str], tmp_path: Path) -> None:
    evaluation = evaluate(some_words(1_000), rows, cuts=range(0, 1_000, 300))
    # How long it took has as many digits as the machine is slow.
    for row in evaluation.rows:
        row.seconds = row.tally.tokens * 123_456e-6
    write_report(evaluation, tmp_path / "report.html", "a text")
    with browsing() as browser:
        check_widths(browser, tmp_path / "report.html")


def check_widths(browser: Browser, path: Path) -> None:
    with browser.new_page() as page:
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        for width in (320, 390, 520, 700, 735, 737, 895, 897, 1000, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            hidden = page.evaluate(
                """() => [...document.querySelectorAll('.scroll')]
                    .filter(one => one.scrollWidth > one.clientWidth)
                    .map(one => one.getAttribute('aria-label'))"""
            )
            assert hidden == [], width
            assert page.evaluate("document.documentElement.scrollWidth") <= width
