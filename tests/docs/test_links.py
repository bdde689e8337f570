"""What the pages link to and name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "*/README.md", ".github/**/*.md")
    for path in ROOT.glob(pattern)
    if ".venv" not in path.parts
)
HISTORY = {"CHANGELOG.md", "decisions.md", "log.md", "reproduce.md"}
"""They speak of files as they were named then."""
NAMED = re.compile(
    r"`((?:unbounded|native|tests|docs|experiments|benchmarks)/[\w./-]*|[A-Z]\w+\.(?:md|cff))`"
)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in HISTORY],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_files_that_are_named_exist(page: Path) -> None:
    for name in NAMED.findall(page.read_text(encoding="utf-8")):
        found = (ROOT / name).exists() or (page.parent / name).exists()
        assert found, f"{page.name} names {name}"
