"""Rows that grow, where they lie or not, are what rows that are copied would be."""

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbounded import growable_array as module
from unbounded.growable_array import GrowableArray, reserved


@pytest.fixture(params=["reserved", "little reserved", "nothing reserved"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    way = str(request.param)
    if way == "little reserved":
        monkeypatch.setattr(module, "_RESERVED", 1)
    if way == "nothing reserved":

        class Refused(mmap.mmap):
            def __new__(cls, *_: object, **__: object) -> "Refused":
                raise OSError("no")

        monkeypatch.setattr(module, "_Pages", Refused)
    return way


@pytest.mark.parametrize("kind", [np.uint32, np.float32])
@pytest.mark.parametrize("shape", [(), (7,)])
def test_rows_stay_and_new_ones_are_zero(
    way: str, kind: type[np.generic], shape: tuple[int, ...]
) -> None:
    expected = np.arange(3 * int(np.prod(shape))).reshape(3, *shape).astype(kind)
    room, rng = GrowableArray(expected, reserve=True), np.random.default_rng(0)
    for count in (3, 5, 100, 101, 5_000):
        found = room.resized(count)
        assert found.flags.writeable
        assert found.flags.c_contiguous
        assert found.dtype == kind
        new = np.zeros((count - len(expected), *shape), kind)
        expected = np.concatenate([expected, new])
        np.testing.assert_array_equal(found, expected)
        found[count // 2] = expected[count // 2] = rng.integers(100)


def test_rows_grow_where_they_lie() -> None:
    room = GrowableArray(np.ones((10, 1000), np.float32), reserve=True)
    first = room.resized(10)
    many = room.resized(100_000)
    assert many.ctypes.data == first.ctypes.data
    many[-1] = 5
    assert first.sum() == 10_000


def test_a_reserved_array_is_not_moved_and_any_other_is() -> None:
    array = reserved((10, 3), np.dtype(np.float32))
    array[:] = 1
    room = GrowableArray(array, reserve=True)
    assert room.resized(1000).ctypes.data == array.ctypes.data
    assert room.resized(1000).sum() == 30
    for other in (np.ones((10, 3)), reserved((10, 3), np.dtype(np.float32))[1:], array[:, :2]):
        grown = GrowableArray(other, reserve=True).resized(1000)
        assert grown.ctypes.data != other.ctypes.data
        assert grown.sum() == other.sum()


def test_a_file_that_is_mapped_is_moved(tmp_path: Path) -> None:
    np.ones(1000, np.float32).tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float32, "r+")
    grown = GrowableArray(mapped[:10], reserve=True).resized(20)
    grown[:] = 2
    assert mapped.sum() == 1000


def test_what_is_reserved_is_not_taken() -> None:
    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    rooms = [
        GrowableArray(np.zeros((1, 4352), np.uint8), reserve=True).resized(1000) for _ in range(100)
    ]
    assert resident() - before < 50e6
    assert len(rooms) == 100


def test_a_room_for_no_rows() -> None:
    assert (
        GrowableArray(np.empty((0, 4), np.uint32), reserve=True).resized(2).tolist()
        == [[0] * 4] * 2
    )


def test_a_system_without_large_pages_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pages: object, advice: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(module._Pages, "madvise", refuse, raising=False)
    rows = GrowableArray(np.arange(3), reserve=True).resized(2_000_000)
    assert rows[:4].tolist() == [0, 1, 2, 0]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=30))
def test_what_is_kept_is_the_end_of_what_was_appended(steps: list[tuple[int, int]]) -> None:
    rows = GrowableArray(np.empty((0, 2), np.float32))
    kept: list[list[float]] = []
    for step, (count, last) in enumerate(steps):
        new = np.full((count, 2), step, np.float32)
        rows.append(new)
        rows.keep_last(last)
        kept = (kept + new.tolist())[max(len(kept) + count - last, 0) :]
        assert rows.view.tolist() == kept
        assert rows.view.flags.c_contiguous


def test_a_window_does_not_grow_for_ever() -> None:
    rows = GrowableArray(np.empty(0, np.int32))
    for step in range(1000):
        rows.append(np.full(10, step, np.int32))
        rows.keep_last(100)
    assert rows.bytes <= 2 * 110 * 4


@pytest.mark.parametrize("spare", [2, 8])
def test_little_room_is_kept_free(spare: int) -> None:
    rows = GrowableArray(np.empty(0, np.int32), spare=spare)
    for _ in range(1000):
        rows.append(np.zeros(7, np.int32))
    assert rows.bytes <= (1 + 1 / spare) * 7000 * 4


def test_rows_that_it_was_given_are_a_copy_that_grows() -> None:
    source = np.arange(3, dtype=np.int32)
    rows = GrowableArray(source)
    source[0] = 9
    rows.append(np.array([5], np.int32))
    assert rows.view.tolist() == [0, 1, 2, 5]
