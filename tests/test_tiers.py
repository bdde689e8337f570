import re

import pytest

from tests.tiers import ROOT, markers

BOTH = ["integration", "contended"]


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("contracts/test_expert.py", []),
        ("corpus/test_tokenizer.py", []),
        ("lm/test_training.py", ["integration"]),
        ("torture/test_damage.py", ["integration"]),
        ("cluster/test_on_ray.py", BOTH),
        ("serve/test_page.py", BOTH),
        ("serve/test_latency.py", BOTH),
        ("serve/test_soak.py", BOTH),
    ],
)
def test_a_test_is_in_the_tier_of_its_folder_and_of_what_it_uses(
    file: str, found: list[str]
) -> None:
    assert markers(ROOT / "tests" / file, f"tests/{file}::test_it") == found


def test_only_clusters_browsers_and_clocks_are_tried_twice() -> None:
    twice = {
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if "contended" in markers(path, path.name)
    }
    browsers = {"test_page.py", "test_page_first.py", "test_report_width.py"}
    clocks = {"test_latency.py", "test_soak.py"}
    assert clocks | browsers <= twice
    for name in twice - clocks - browsers:
        [path] = (ROOT / "tests").rglob(name)
        assert "ray" in re.findall(r"importorskip\(.(\w+).\)", path.read_text(encoding="utf-8"))
