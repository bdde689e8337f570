import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.page import BEGIN, END, draw_all, fill, page_part
from tests.experiments.made_up import keep, keep_all
from unbounded.errors import SettingError


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    keep_all(tmp_path / "experiments" / "results")
    return tmp_path / "experiments"


def test_only_what_is_between_the_markers_changes(experiments: Path, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "reproduce.md"
    page.parent.mkdir()
    page.write_text(f"# By hand\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n", encoding="utf-8")
    fill(page, page_part(experiments / "results"))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# By hand\n\nBefore.\n\n{BEGIN}\n\n## ")
    assert text.endswith(f"\n\n{END}\n\nAfter.\n")
    assert "\nold\n" not in text
    fill(page, page_part(experiments / "results"))
    assert page.read_text(encoding="utf-8") == text


def test_a_page_without_markers_is_left_alone(experiments: Path, tmp_path: Path) -> None:
    page = tmp_path / "reproduce.md"
    for text in ("# By hand\n", f"{BEGIN}\n", f"{END}\n{BEGIN}\n"):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(SettingError, match="has no place for the tables"):
            fill(page, page_part(experiments / "results"))
        assert page.read_text(encoding="utf-8") == text


def test_every_table_and_figure_is_drawn_and_every_link_leads_somewhere(
    experiments: Path, tmp_path: Path
) -> None:
    docs, readme = tmp_path / "docs", tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    written = draw_all(experiments)
    assert readme in written
    first = {path: path.read_bytes() for path in written}
    for path in (experiments / "results").glob("*.jsonl"):
        later = [json.loads(line) | {"when": "2099"} for line in path.read_text().splitlines()]
        keep(path.parent, path.stem, *later)
    # The same whenever it is drawn.
    assert {path: path.read_bytes() for path in draw_all(experiments)} == first
    figures = {path.name for path in written if path.parent.name == "figures"}
    for path in (path for path in written if path.suffix == ".svg"):
        ElementTree.parse(path)
    tables = {path.name for path in written if path.parent.name == "tables"}
    names = [*(f"table{n}" for n in range(1, 5)), "ablation", "ladder"]
    assert tables == {f"{name}-paper.md" for name in names}
    links = re.findall(r"!\[.*?\]\((.*?)\)", (docs / "reproduce.md").read_text(encoding="utf-8"))
    assert len(links) == 7 == len(figures)
    assert all((docs / link).resolve() in [path.resolve() for path in written] for link in links)


def test_without_results_there_is_a_page_all_the_same(tmp_path: Path) -> None:
    draw_all(tmp_path / "experiments")
    text = (tmp_path / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert text.count("No results yet.") == 9
    assert "220.9" in text
    assert not (tmp_path / "experiments").exists()


def test_the_markdown_needs_no_matplotlib(
    experiments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "figure2.svg" in page_part(experiments / "results")


def test_draw_only_draws_without_corpora(experiments: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "experiments"]
    words += ["--experiments", str(experiments)]
    ran = subprocess.run([*words, "--draw-only"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "reproduce.md" in ran.stderr
    assert (tmp_path / "docs" / "reproduce.md").exists()
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "--corpora is missing" in ran.stderr
