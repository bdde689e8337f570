"""The demonstration from end to end, on a tenth of its text."""

import json
import os
import subprocess
import sys
from pathlib import Path

SMALLER = """
import unbounded.demo as demo
demo.TRAIN_TOKENS, demo.READ_TOKENS = 20_000, 6_000
from unbounded.cli import main
main()
"""


def test_the_demo_shows_every_row_near_and_far_and_draws_them(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", SMALLER, "demo", "--json", "figures.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    for part in (figures, figures["near"]):
        assert part["tokens"] == 6_000
        perplexity = {row["name"]: row["perplexity"] for row in part["rows"]}
        assert list(perplexity) == ["static", "unigram", "local", "unbounded", "full"]
    assert perplexity["unbounded"] < perplexity["static"]
    far = {row["name"]: row["perplexity"] for row in figures["rows"]}
    assert far["unbounded"] < 0.6 * far["static"]  # measured 0.35
    assert far["full"] < far["unbounded"]
    for place in ("near", "far"):
        page = (tmp_path / "demo" / f"{place}.html").read_text()
        assert "static + unbounded cache" in page
        assert page.count("<svg") >= 2
    assert "near:" in ran.stdout
    assert "far: chat between strangers" in ran.stdout


def test_a_second_demo_reuses_the_model(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SMALLER, "demo", "--threads", "1"]
    for _ in range(2):
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "training" not in ran.stderr
