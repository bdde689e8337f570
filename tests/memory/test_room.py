"""An array that grows where it lies is what one that is copied would be."""

import mmap

import numpy as np
import pytest

from unbounded.memory import room as module
from unbounded.memory.room import Room


@pytest.fixture(params=["reserved", "little reserved", "nothing reserved"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    way = str(request.param)
    if way == "little reserved":
        monkeypatch.setattr(module, "_RESERVED", 1)
    if way == "nothing reserved":

        def refuse(*_: object, **__: object) -> None:
            raise OSError("no")

        monkeypatch.setattr(mmap, "mmap", refuse)
    return way


@pytest.mark.parametrize("kind", [np.uint32, np.float32])
@pytest.mark.parametrize("shape", [(), (7,)])
def test_rows_stay_and_new_ones_are_zero(
    way: str, kind: type[np.generic], shape: tuple[int, ...]
) -> None:
    expected = np.arange(3 * int(np.prod(shape))).reshape(3, *shape).astype(kind)
    room, rng = Room(expected), np.random.default_rng(0)
    for count in (3, 5, 100, 101, 5_000):
        found = room.first(count)
        assert found.flags.writeable
        assert found.flags.c_contiguous
        assert found.dtype == kind
        new = np.zeros((count - len(expected), *shape), kind)
        expected = np.concatenate([expected, new])
        np.testing.assert_array_equal(found, expected)
        found[count // 2] = expected[count // 2] = rng.integers(100)


def test_rows_grow_where_they_lie() -> None:
    room = Room(np.ones((10, 1000), np.float32))
    first = room.first(10)
    many = room.first(100_000)
    assert many.ctypes.data == first.ctypes.data
    many[-1] = 5
    assert first.sum() == 10_000


def test_what_is_reserved_is_not_taken() -> None:
    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    rooms = [Room(np.zeros((1, 4352), np.uint8)).first(1000) for _ in range(100)]
    assert resident() - before < 50e6
    assert len(rooms) == 100


def test_a_room_for_no_rows() -> None:
    assert Room(np.empty((0, 4), np.uint32)).first(2).tolist() == [[0] * 4] * 2
