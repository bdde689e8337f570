"""What the pages of uses say of their results is what those say."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_log_on_its_page_is_the_one_that_was_read() -> None:
    found = json.loads((ROOT / "experiments" / "results" / "logs.json").read_text())
    page = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    assert json.dumps(found["most"][0]) in page
    assert f"All {found['words']:,} words had a perplexity of {found['perplexity']:.1f}" in page
    assert all("install" in line["text"] for line in found["most"])


def test_the_time_of_rescoring_is_what_was_measured() -> None:
    found = json.loads((ROOT / "experiments" / "results" / "rescoring-time.json").read_text())
    page = (ROOT / "docs" / "recognition.md").read_text(encoding="utf-8")
    names = ("static", "full_10000", "full_100000")
    alone, small, large = (found[name]["threads_2"]["milliseconds"] for name in names)
    assert f"two quiet cores take {alone:.0f} ms with the network alone" in page
    assert f"{large:.0f} ms with all experts and a memory of 100,000 words" in page
    assert f"and {small:.0f} ms with one of 10,000" in page
    one = [f"{found[name]['threads_1']['milliseconds']:.0f}" for name in names]
    assert f"({one[0]}, {one[2]} and {one[1]} ms on one thread" in page
    assert found["beside"] == "nothing"
