"""What is drawn from results is what is committed, byte for byte."""

import shutil
from pathlib import Path

from experiments.page import draw_all

ROOT = Path(__file__).parents[2]


def test_drawing_again_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "experiments" / "results",
        tmp_path / "experiments" / "results",
        ignore=shutil.ignore_patterns("tables", "figures"),
    )
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/reproduce.md"):
        shutil.copy(ROOT / page, tmp_path / page)
    drawn = {path.relative_to(tmp_path) for path in draw_all(tmp_path / "experiments")}
    assert len(drawn) > 10
    for path in drawn:
        there = ROOT / path
        assert there.exists(), f"{path} is missing; run: python -m experiments --draw-only"
        same = there.read_bytes() == (tmp_path / path).read_bytes()
        assert same, f"{path} is another; run: python -m experiments --draw-only"
    kept = {
        path.relative_to(ROOT)
        for folder in ("tables", "figures")
        for path in (ROOT / "experiments" / "results" / folder).iterdir()
    }
    assert kept <= drawn, "nothing draws them; remove them"
