"""`python -m benchmarks cluster` on a tiny cluster; what it writes fits the model on paper."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scale import Constants, scale_grids, words_per_second

pytest.importorskip("ray")


def test_figures_as_json_are_what_the_simulation_takes(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    words = [sys.executable, "-m", "benchmarks", "cluster", "--entries", "4k", "--shards", "1,2"]
    words += ["--blocks", "64,128", "--words", "256", "--json", str(out)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "2 shards, blocks of 128" in ran.stdout
    figures = json.loads(out.read_text())
    assert [row["shards"] for row in figures["rows"]] == [0, 1, 2]
    for row in figures["rows"]:
        assert all(rate > 0 for rate in row["words_per_second"].values())
        assert row["added_per_second"] > 0
    assert figures["alone"].keys() == {"1", "2"}
    constants = Constants.fitted(figures)
    assert constants.scan >= 0
    assert words_per_second(constants, 10**6, 2) > 0
    assert [len(grid.parts[0].lines) for grid in scale_grids(figures)] == [3, 4]
