"""One file is damaged, in every way and place: it is refused, or all that was there is there."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Torture
from tests.torture.places import PLACES, Place, files_of, fresh
from unbounded.errors import EngineError, StoreError

Harm = Callable[[Path, np.random.Generator], None]


def flip(path: Path, random: np.random.Generator) -> None:
    data = bytearray(path.read_bytes() or b"?")
    data[random.integers(len(data))] ^= 1 << int(random.integers(8))
    path.write_bytes(data)


def shorten(path: Path, random: np.random.Generator) -> None:
    os.truncate(path, int(random.integers(max(path.stat().st_size, 1))))


def zero(path: Path, random: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    start = int(random.integers(max(len(data), 1)))
    stop = min(len(data), start + int(random.integers(1, 600)))
    data[start:stop] = bytes(stop - start)
    path.write_bytes(data)


def lengthen(path: Path, random: np.random.Generator) -> None:
    with path.open("ab") as file:
        file.write(random.bytes(int(random.integers(1, 60))))


def double(path: Path, random: np.random.Generator) -> None:
    """A stretch is there twice, as after a write that was repeated."""
    data = path.read_bytes()
    start = int(random.integers(max(len(data), 1)))
    path.write_bytes(data[: start + 100] + data[start:])


def lose(path: Path, random: np.random.Generator) -> None:
    path.unlink()


SAMPLE = 12

HARMS: dict[str, tuple[Harm, int]] = {
    # And how often each is done to a file, under make torture.
    "flip": (flip, 12),
    "shorten": (shorten, 6),
    "zero": (zero, 4),
    "lengthen": (lengthen, 2),
    "double": (double, 3),
    "lose": (lose, 1),
}


def kind_of(name: str) -> str:
    return re.sub(r"\d{4,}", "N", name)


@pytest.mark.torture
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_damage_to_a_file_is_refused_or_harmless(
    tmp_path: Path, place: Place, torture: Torture
) -> None:
    place.fill(tmp_path / "good", torture.seed % 1000)
    expected, events = place.known(fresh(tmp_path / "good", tmp_path / "m"))
    assert events == []
    after, _ = place.known(fresh(tmp_path / "good", tmp_path / "m"), 7)
    counts: dict[str, int] = {}
    every = [(name, how) for name in files_of(tmp_path / "good") for how in HARMS]
    times = [(name, how) for name, how in every for _ in range(HARMS[how][1])]
    if not torture.whole:
        times = [every[i] for i in torture.random.permutation(len(every))[:SAMPLE]]
    for name, how in times:
        folder = fresh(tmp_path / "good", tmp_path / "m")
        HARMS[how][0](folder / name, torture.random)
        changed = _file(folder / name) != _file(tmp_path / "good" / name)
        counts[kind_of(name)] = counts.get(kind_of(name), 0) + 1
        where = f"{how} of {name} with seed {torture.seed}"
        try:
            found, _ = place.known(folder)
        except (StoreError, EngineError) as error:
            assert changed, where
            assert len(str(error).splitlines()) == 1, where  # noqa: PT017
            continue
        assert found == expected, where
        # What comes now does not lie behind a hole.
        assert place.known(folder, 7)[0] == after, where
        assert place.known(folder)[0] == after, where
    for kind, count in counts.items():
        torture.tell("damage", f"{place.name}: {kind}", count)


def _file(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
