"""One table says what a name stands for, and what follows from a model is worked out once."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbounded import states as module
from unbounded.states import derived


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "WORTH_KEEPING", -1.0)
    return tmp_path / "unbounded" / "derived"


def never() -> dict[str, np.ndarray]:
    raise AssertionError("it was worked out again")


def test_what_was_worked_out_is_found_again_and_writing_to_it_changes_no_file(cache: Path) -> None:
    made = derived("a", lambda: {"x": np.arange(5), "y": np.ones((2, 3), np.float32)})
    for _ in range(2):
        found = derived("a", never)
        assert found.keys() == made.keys()
        for name, array in made.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
        found["x"][:] = 7


def test_quick_work_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_KEEPING", 60.0)
    derived("a", lambda: {"x": np.arange(5)})
    assert not cache.exists()


def test_damage_is_worked_out_again(cache: Path) -> None:
    derived("a", lambda: {"x": np.arange(5)})
    (cache / "a" / "x.npy").write_bytes(b"\x93NUMPY")
    assert derived("a", lambda: {"x": np.arange(3)})["x"].tolist() == [0, 1, 2]
    assert derived("a", never)["x"].tolist() == [0, 1, 2]


def test_only_what_was_used_last_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    for when, key in enumerate("abc"):
        derived(key, lambda: {"x": np.arange(5)})
        os.utime(cache / key, (when, when))
    derived("d", lambda: {"x": np.arange(5)})
    assert sorted(path.name for path in cache.iterdir()) == ["c", "d"]


def test_what_is_being_removed_is_found_whole_or_not_at_all(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived("a", lambda: {"x": np.arange(5), "y": np.arange(5)})
    os.utime(cache / "a", (0, 0))
    monkeypatch.setattr(module, "KEPT", 1)
    real, seen = shutil.rmtree, []

    def half_way(path: Path, **more: Any) -> None:
        if (Path(path) / "y.npy").exists():
            (Path(path) / "y.npy").unlink()
            seen.append((cache / "a").exists())
        real(path, **more)

    monkeypatch.setattr(shutil, "rmtree", half_way)
    derived("b", lambda: {"x": np.arange(5)})
    assert seen == [False]


def test_where_nothing_can_be_written_it_is_worked_out_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(module, "WORTH_KEEPING", -1.0)
    assert derived("a", lambda: {"x": np.arange(5)})["x"].tolist() == [0, 1, 2, 3, 4]
