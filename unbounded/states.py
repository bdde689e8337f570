"""What was learned, as arrays: a whole state, or what has come since; one protocol for all.

What follows from a model alone is worked out once, and mapped from the user's cache (`derived`).
"""

import os
import re
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.files import cache_folder

Arrays = Mapping[str, np.ndarray]


class NoDelta(Exception):
    """What has come since cannot be told; take the whole state."""


class Stateful(ABC):
    """Something that learns, and can be written down."""

    @abstractmethod
    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """All that was learned; or what has come since so many words, with all that is small.

        What follows from the words alone is not told again. Raises `NoDelta` where that is not
        known; from then on, and wherever it was asked for, it is.
        """

    @abstractmethod
    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote a whole state and the deltas after it; arrays may be kept and changed.

        What is small is needed in the last part only. With a delta come the words that were read,
        as `ids`, in `blocks` of such lengths, with a full vocabulary of such `sizes`.
        """


def under(name: str, state: Arrays) -> dict[str, np.ndarray]:
    """A part's arrays as those of the whole.

    >>> list(under("index", {"keys": np.zeros(1)}))
    ['index.keys']
    """
    return {f"{name}.{part}": array for part, array in state.items()}


def part(name: str, state: Arrays) -> dict[str, np.ndarray]:
    """The arrays of one part, as it gave them.

    >>> list(part("index", {"words": np.zeros(1), "index.keys": np.zeros(1)}))
    ['keys']
    """
    prefix = f"{name}."
    return {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}


def to_array(words: Iterable[str]) -> np.ndarray:
    """Words as bytes, a line each; none of them has a line's end."""
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def from_array(array: np.ndarray) -> list[str]:
    """The words that were written.

    >>> from_array(to_array(["a", "b"])), from_array(to_array([]))
    (['a', 'b'], [])
    """
    text = array.tobytes().decode()
    return text.split("\n") if text else []


NPY_HEAD = 4096
"""Bytes that hold the header of any array of ours."""

_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|=]\w+)', 'fortran_order': False, "
    rb"'shape': \(([0-9, ]*)\), \} *\n",
    re.DOTALL,
)


def npy_header(data: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of an array in npy format, and where its numbers begin; or `ValueError`.

    numpy reads headers by `ast`, which fails now and then where several threads do, until Python
    3.11.8: a sound checkpoint was then called damaged.
    """
    if not (match := _NPY.match(data)):
        raise ValueError("no header of an array")
    try:
        dtype = np.dtype(match[2].decode())
    except TypeError as error:
        raise ValueError("no header of an array") from error
    start = 10 + int.from_bytes(match[1], "little")
    if start != match.end() or dtype.hasobject:
        raise ValueError("no header of an array")
    return tuple(map(int, re.findall(rb"\d+", match[3]))), dtype, start


WORTH_KEEPING = 0.2
"""Seconds of work from which the outcome is kept."""

KEPT = 12
"""Outcomes that are kept at most, those used last; three a model, some 200 MB for two million
words."""


def derived(key: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make` gives, or gave when it was last asked under this key.

    They may be written to, which changes no file. Where nothing can be kept, it is worked out each
    time.
    """
    folder = cache_folder() / "derived" / key
    try:
        found = {path.stem: _mapped(path) for path in folder.glob("*.npy")}
        if found:
            os.utime(folder)
            return found
    except (OSError, ValueError):
        _remove(folder)
    began = time.perf_counter()
    made = make()
    if time.perf_counter() - began > WORTH_KEEPING:
        _keep(folder, made)
    return made


def _mapped(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        shape, dtype, start = npy_header(file.read(NPY_HEAD))
    return np.asarray(np.memmap(path, dtype, "c", start, shape))


def _keep(folder: Path, arrays: Arrays) -> None:
    """Write the arrays beside their place and rename them into it, if there is room."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
        try:
            for name, array in arrays.items():
                np.save(beside / f"{name}.npy", array)
            # Another process may have been faster; its outcome is the same.
            beside.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        used = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in used[:-KEPT]:
            _remove(old)
    except OSError:
        # A full or read-only disk: the next process works it out again.
        return


def _remove(folder: Path) -> None:
    """Out of sight in one step, then away: another process finds all of it or nothing."""
    with suppress(OSError):
        beside = tempfile.mkdtemp(prefix=".", dir=folder.parent)
        os.rename(folder, beside)
        shutil.rmtree(beside, ignore_errors=True)
