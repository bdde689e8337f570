"""Arrays that are set aside come back to the bit, or not at all."""

from pathlib import Path

import numpy as np
import pytest

from unbounded.growable_array import GrowableArray
from unbounded.store.disk import RealDisk, sealed, unsealed
from unbounded.store.snapshot import (
    ARRAYS,
    MANIFEST,
    Snapshot,
    read_arrays,
    read_manifest,
    write_snapshot,
)

STATE = {
    "floats": np.array([[1.5, np.nan], [-0.0, np.inf]]),
    "none": np.empty((0, 7), np.float32),
    "turned": np.arange(6, dtype=np.int32).reshape(2, 3).T,
    "bytes": np.frombuffer(b"words\nand more", np.uint8),
    "one": np.array(3),
}


def written(folder: Path) -> Snapshot:
    about = Snapshot(folder / "snapshot-00000001-000000000003", 1, 3, 99, 12, 10)
    write_snapshot(RealDisk(), about, STATE)
    return about


def test_arrays_and_what_is_said_of_them_come_back(tmp_path: Path) -> None:
    about = written(tmp_path)
    assert read_manifest(about.path)[0] == about
    found = read_arrays(about.path)
    assert list(found) == list(STATE)
    for name, array in STATE.items():
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes()
    assert found["turned"].shape == (3, 2)
    assert [path.name for path in tmp_path.iterdir()] == [about.path.name]


def test_a_large_array_comes_back_where_it_can_grow(tmp_path: Path) -> None:
    about = Snapshot(tmp_path / "snapshot-00000001-000000000003", 1, 3, 99, 12, 10)
    array = np.arange(1_500_000, dtype=np.int32).reshape(-1, 3)
    write_snapshot(RealDisk(), about, {"small": array[:5], "large": array})
    found = read_arrays(about.path)
    assert np.array_equal(found["large"], array)
    assert np.array_equal(found["small"], array[:5])
    grown = GrowableArray(found["large"], reserve=True).resized(len(array) + 1)
    assert grown.ctypes.data == found["large"].ctypes.data
    assert grown[-1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_every_flipped_bit_is_noticed(tmp_path: Path, name: str) -> None:
    about = written(tmp_path)
    whole = (about.path / name).read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at * 5) % 8
        (about.path / name).write_bytes(damaged)
        with pytest.raises((ValueError, KeyError)):
            read_arrays(about.path)
    for length in (0, 1, len(whole) - 1):
        (about.path / name).write_bytes(whole[:length])
        with pytest.raises((ValueError, KeyError)):
            read_arrays(about.path)


def test_a_snapshot_under_another_name_is_not_taken_for_it(tmp_path: Path) -> None:
    about = written(tmp_path)
    other = about.path.with_name("snapshot-00000001-000000000004")
    about.path.rename(other)
    with pytest.raises(ValueError, match="another snapshot"):
        read_manifest(other)


def test_a_seal_is_of_the_value_and_not_of_its_spelling() -> None:
    assert unsealed(sealed({"b": 1, "a": "ü"})) == {"b": 1, "a": "ü"}
    with pytest.raises(ValueError, match="checksum"):
        unsealed(sealed({"b": 1}).replace(b'"b": 1', b'"b": 2'))
