"""The demonstration from end to end, on a tenth of its text."""

import json
from pathlib import Path

import pytest

from tests.commands import unbounded
from unbounded import demo


def test_the_demo_shows_every_row_near_and_far_draws_them_and_reuses_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "TRAIN_TOKENS", 20_000)
    monkeypatch.setattr(demo, "READ_TOKENS", 6_000)
    ran = unbounded("demo", "--json", "figures.json")
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
    monkeypatch.setattr(demo, "READ_TOKENS", 500)
    again = unbounded("demo", "--threads", 1)
    assert again.returncode == 0
    assert "training" not in again.stderr
