"""What follows from a model alone, worked out once: kept in the user's cache, mapped from there."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from unbounded.files import cache_folder

WORTH_KEEPING = 0.2
"""Seconds of work from which the outcome is kept."""

KEPT = 12
"""Outcomes that are kept at most, those used last; three a model, some 200 MB for two million
words."""

Arrays = Mapping[str, np.ndarray]


def derived(key: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make` gives, or gave when it was last asked under this key.

    They may be written to, which changes no file. Where nothing can be kept, it is worked out each
    time.
    """
    folder = cache_folder() / "derived" / key
    try:
        found = {
            path.stem: np.asarray(np.load(path, mmap_mode="c")) for path in folder.glob("*.npy")
        }
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
