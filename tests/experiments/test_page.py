import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.page import BEGIN, END, draw_all, html_page, tables_part, write_page
from tests.evaluation.test_report import Tags
from tests.experiments.made_up import keep, keep_all, rows_result
from unbounded.errors import SettingError


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    keep_all(tmp_path / "experiments" / "results")
    return tmp_path / "experiments"


def test_only_what_is_between_the_markers_changes(experiments: Path, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "reproduce.md"
    page.parent.mkdir()
    page.write_text(f"# By hand\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n", encoding="utf-8")
    write_page(experiments / "results", page.parent)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# By hand\n\nBefore.\n\n{BEGIN}\n\n## ")
    assert text.endswith(f"\n\n{END}\n\nAfter.\n")
    assert "\nold\n" not in text
    write_page(experiments / "results", page.parent)
    assert page.read_text(encoding="utf-8") == text


def test_a_page_without_markers_is_left_alone(experiments: Path, tmp_path: Path) -> None:
    page = tmp_path / "reproduce.md"
    for text in ("# By hand\n", f"{BEGIN}\n", f"{END}\n{BEGIN}\n"):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(SettingError, match="has no place for the tables"):
            write_page(experiments / "results", tmp_path)
        assert page.read_text(encoding="utf-8") == text


def test_every_table_and_figure_is_drawn_and_every_link_leads_somewhere(
    experiments: Path, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    written = draw_all(experiments, docs)
    first = {path: path.read_bytes() for path in written}
    for path in (experiments / "results").glob("*.jsonl"):
        later = [json.loads(line) | {"when": "2099"} for line in path.read_text().splitlines()]
        keep(path.parent, path.stem, *later)
    # The same whenever it is drawn.
    assert {path: path.read_bytes() for path in draw_all(experiments, docs)} == first
    figures = {path.name for path in written if path.parent.name == "figures"}
    stems = ("figure1-kernels", "figure1", "figure2")
    assert figures == {f"{name}-paper.{suffix}" for name in stems for suffix in ("png", "svg")}
    for path in (path for path in written if path.suffix == ".svg"):
        ElementTree.parse(path)
    tables = {path.name for path in written if path.parent.name == "tables"}
    names = [*(f"table{n}" for n in range(1, 5)), "dynamic", "ablation", "compressors"]
    assert tables == {f"{name}-paper.{suffix}" for name in names for suffix in ("md", "tex")}
    links = re.findall(r"!\[.*?\]\((.*?)\)", (docs / "reproduce.md").read_text(encoding="utf-8"))
    assert len(links) == 3
    assert all((docs / link).resolve() in [path.resolve() for path in written] for link in links)


def test_the_gist_compares_the_same_cells(tmp_path: Path) -> None:
    keep(tmp_path, "table2-paper", rows_result("news-2007", "news-2007"))
    text = tables_part(tmp_path, tmp_path)
    assert "in the 1 cell with a result" in text
    assert "static + unbounded cache −40.0% (paper −24.6%); all together −50.0%." in text
    assert "We score 1,000 words a cell where the paper scores 10,000,000" in text
    assert r"dropout (0.2)" in text
    # What explains a difference is said only where it is so.
    same = rows_result("news-2007", "news-2007", tokens=10_000_000, trained={"dropout": 0.0})
    keep(tmp_path, "table2-paper", same)
    text = tables_part(tmp_path, tmp_path)
    assert "We score" not in text
    assert "dropout" not in text


def test_without_results_there_is_a_page_all_the_same(tmp_path: Path) -> None:
    draw_all(tmp_path / "experiments", tmp_path / "docs")
    text = (tmp_path / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert text.count("No results yet.") == 9
    assert "220.9" in text
    assert "Why they differ" not in text
    assert not (tmp_path / "experiments").exists()


def test_the_markdown_needs_no_matplotlib(
    experiments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "figure2-paper.svg" in tables_part(experiments / "results", experiments)


def test_the_twin_is_whole_asks_nothing_and_wears_the_page_s_colors(experiments: Path) -> None:
    page = html_page(experiments / "results")
    assert page == html_page(experiments / "results")
    found = [attributes for _, attributes in Tags(page).found]
    assert not [name for each in found for name in ("src", "href") if each.get(name)]
    ids = [each["id"] for each in found if "id" in each]
    assert len(set(ids)) == len(ids)
    assert page.count("<svg") == 3
    assert "var(--books)" in page
    assert "prefers-color-scheme: dark" in page
    assert "url(http" not in page
    for name in set(re.findall(r"var\(--(\w+)\)", page)):
        assert f"--{name}:" in page


def test_draw_only_draws_without_corpora(experiments: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "experiments", "all"]
    words += ["--experiments", str(experiments)]
    ran = subprocess.run([*words, "--draw-only"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "reproduce.html" in ran.stderr
    assert (tmp_path / "docs" / "reproduce.html").exists()
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "--corpora is missing" in ran.stderr
