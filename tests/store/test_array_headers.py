"""Headers of arrays: the same as numpy reads, whatever other threads do meanwhile."""

import ast
import io
from pathlib import Path

import numpy as np
import pytest

from unbounded import states
from unbounded.states import npy_header
from unbounded.store.disk import RealDisk
from unbounded.store.snapshot import Snapshot, read_arrays, write_snapshot


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5), (1, 2, 3)])
@pytest.mark.parametrize("kind", ["<f4", "<f8", "<i8", "|u1", "|b1", "<i2", "<U3"])
def test_what_numpy_writes_is_read_as_numpy_reads_it(shape: tuple[int, ...], kind: str) -> None:
    file, array = io.BytesIO(), np.zeros(shape, kind)
    np.save(file, array)
    assert npy_header(file.getvalue()) == (shape, array.dtype, len(file.getvalue()) - array.nbytes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"NUMPY", b"NUMPX"),
        (b"\x01\x00", b"\x02\x00"),
        (b"<f4", b"|O "),
        (b"<f4", b"<q9"),
        (b"False", b"True "),
        (b"(2, 5)", b"(2,x5)"),
        (b"\n", b" "),
    ],
)
def test_damage_is_refused(old: bytes, new: bytes) -> None:
    file = io.BytesIO()
    np.save(file, np.zeros((2, 5), np.float32))
    data = file.getvalue()
    assert old in data
    with pytest.raises(ValueError, match="no header"):
        npy_header(data.replace(old, new, 1))


def test_no_header_is_read_by_what_threads_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = {f"a{n}": np.arange(n + 1) for n in range(3)}
    about = Snapshot(tmp_path / "s", 1, 1, 1, 1, 1)
    write_snapshot(RealDisk(), about, arrays)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(states, "WORTH_KEEPING", -1.0)
    states.derived("a", lambda: arrays)

    def fails(*given: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "literal_eval", fails)
    for found in (read_arrays(about.path), states.derived("a", dict)):
        assert {name: array.tolist() for name, array in found.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }
