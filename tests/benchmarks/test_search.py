from pathlib import Path

import pytest

from benchmarks.read import bench_read
from benchmarks.search import bench_search
from unbounded.corpus import Reader
from unbounded.errors import SettingError
from unbounded.lm import load_model


def test_every_index_is_measured_at_every_mark(place: Path) -> None:
    model, text = load_model(place / "model"), Reader([place / "text.txt"])
    kept: list[int] = []

    def keep(mark: int, figures: object, *, done: bool) -> None:
        kept.append(mark)

    found = bench_search(model, text, [3_000, 2_000], keep=keep)
    assert kept == [2_000, 3_000]
    for there in found.values():
        assert there.keys() == {"auto", "ivfpq", "flat", "stock"}
        for row in there.values():
            assert row["queries_per_second"] > 0
            assert 0 < row["recall"] <= 1
            assert 0 < row["filled"] <= 1
            assert row["bytes_per_entry"] > 16
        assert there["stock"]["ratio"] == 1
        # Ties at the last place may fall otherwise.
        assert there["flat"]["recall"] > 0.99


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ([4_000, 4_100], "4,000 and 4,100 entries are too near each other"),
        ([10], "10 entries were asked for"),
        ([10_000_000], "the text has .* words and 10,000,000 are needed"),
    ],
)
def test_marks_that_cannot_be_measured_are_refused(
    marks: list[int], said: str, place: Path
) -> None:
    model, text = load_model(place / "model"), Reader([place / "text.txt"])
    with pytest.raises(SettingError, match=said):
        bench_read(model, text, marks)
