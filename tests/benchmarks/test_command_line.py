"""`python -m benchmarks` as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.plot import draw_searches
from benchmarks.report import read_table


def bench(verb: str, place: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    options = ("--model", place / "model", "--threads", 1, *words)
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", verb, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_reading_is_measured_at_every_mark(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "read.json"
    ran = bench("read", place, "--entries", "2k,4k", "--text", place / "text.txt", "--json", file)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(file.read_text())
    assert figures.keys() >= {"machine", "threads", "text", "entries"}
    assert list(figures["entries"]) == ["2000", "4000"]
    for mark, there in figures["entries"].items():
        for name in ("static", "local", "unbounded", "full", "search", "stock_search", "stream"):
            assert there[f"{name}_us"] > 0
        for name in ("local", "unbounded", "full"):
            assert there[f"{name}_ratio"] == pytest.approx(there[f"{name}_us"] / there["static_us"])
        for name in ("local_us", "unbounded_us", "full_summed_us"):
            # It is the network, the uniform and more.
            assert there[name] > there["static_us"]
        assert there["search_ratio"] == pytest.approx(
            there["queries_per_second"] / there["stock_queries_per_second"]
        )
        assert there["queries_per_second"] == pytest.approx(1e6 / there["search_us"])
        assert there["paper_ratio"]["unbounded"] == pytest.approx([5.28, 6.94], abs=0.01)
        assert there["bytes_per_entry"] > 16
        assert 0 < there["peak_rss_beyond_model"] < there["peak_rss"]
        assert there["longest_stall_s"] >= 0
        assert 0 < there["predict_us"]["median"] <= there["predict_us"]["p99"]
        assert there["plain_cache_us"] > 0
        assert there["torch_static_us"] > 0
        assert there["charged_us"] > 0
        assert there["stock_charged_us"] > there["stock_search_us"]
        perplexity = there["perplexity"]
        frozen = {"unbounded_frozen", "as_many_frozen", "stock", "knn_lm"}
        assert perplexity.keys() == {"static", "local", "unbounded", "full"} | frozen
        assert all(1 < value < 10_000 for value in perplexity.values())
        # So few entries ask for no more neighbors than the paper does.
        assert there["k"] == there["stock_k"]
        assert perplexity["as_many_frozen"] == perplexity["unbounded_frozen"]
        # While nothing is older than the window, the two caches hold the same.
        assert perplexity["local"] == pytest.approx(perplexity["unbounded"], rel=1e-6)
        assert f"{int(mark):,} entries" in ran.stdout


def test_a_text_that_is_too_short_is_refused_in_one_line(place: Path) -> None:
    ran = bench("search", place, "--entries", "2k", "--text", place / "short.txt")
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    # Five words and two sentence ends; the queries follow the entries.
    assert line.startswith("Error: the text has 7 words and 4,048 are needed")


def test_a_memory_is_killed_and_opened_again(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "restart.json"
    ran = bench("restart", place, "--entries", "2k", "--text", place / "text.txt", "--json", file)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(file.read_text())
    assert figures["equal"]
    assert figures["lost"] == 0
    assert figures["read"]["words"] >= 2_000
    assert "0 lost, what it says equal to the bit" in ran.stdout


def test_the_plot_has_every_search_of_the_committed_figures(tmp_path: Path) -> None:
    results = Path(__file__).parents[2] / "benchmarks" / "results"
    figures = json.loads((results / "read-1M-native.json").read_text())
    svg, png = draw_searches(figures, tmp_path / "read-1M-native.json")
    assert png.stat().st_size < 200_000
    drawn = svg.read_text()
    for name in ("PQ128x4fs", "PCA128, PQ64x4fs", "RaBitQfs4", "ours, 1,152 neighbors"):
        assert f">{name}<" in drawn
    assert drawn == (results / "read-1M-native.svg").read_text(), "run: python -m benchmarks plot"
    # Without the fields that came later it is told all the same.
    table = read_table(1_000_000, figures["entries"]["1000000"])
    assert "best of faiss: RaBitQfs, 16 probes, 204.7 µs, 9.6 times our time; stock 9.1" in table
    assert max(map(len, table.splitlines())) < 200
