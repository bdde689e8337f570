"""Files of one memory in the place of another's: refused or said, never a silent change."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Torture
from tests.torture.places import PLACES, Place, files_of, fresh
from unbounded.errors import EngineError, StoreError

HARMLESS = {"lock", "kept-mind"}
SAMPLE = 3


def crossed(place: Place, one: Path, other: Path, target: Path, torture: Torture) -> int:
    """Put each file and each folder of one into a copy of the other; how many."""
    expected, _ = place.known(fresh(other, target))
    names = files_of(one) + sorted(p.name for p in one.iterdir() if p.is_dir())
    # A journal that only goes on further is what a crash before the mark leaves.
    names = [name for name in names if not _begins_as(one / name, other / name)]
    if not torture.whole:
        names = [names[i] for i in torture.random.permutation(len(names))[:SAMPLE]]
    for name in names:
        for without in (None, "acknowledged"):
            folder = fresh(other, target)
            if without is not None:
                (folder / without).unlink()
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
            (folder / name).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (one / name).is_dir() else shutil.copy
            copy(one / name, folder / name)
            try:
                found, said = place.known(folder)
            except (StoreError, EngineError) as error:
                assert len(str(error).splitlines()) == 1  # noqa: PT017
                continue
            where = f"{name} of another history, without {without}, seed {torture.seed}: {said}"
            assert found == expected or said, where
            if without is None and name not in HARMLESS:
                assert found == expected, where
    return 2 * len(names)


def _begins_as(longer: Path, journal: Path) -> bool:
    there = journal.name.startswith("journal") and journal.exists()
    return there and longer.read_bytes().startswith(journal.read_bytes())


def of_another(place: Place, folder: Path, seed: int) -> list[tuple[Path, Path]]:
    """Two memories that have nothing in common: each one's files in the other."""
    a, b = folder / "a", folder / "b"
    place.fill(a, seed)
    place.fill(b, seed + 10)
    return [(a, b), (b, a)]


def of_an_earlier_time(place: Place, folder: Path, seed: int) -> list[tuple[Path, Path]]:
    """Two futures of one past: a backup that was restored and went on otherwise."""
    past, a, b = (folder / name for name in ("past", "a", "b"))
    place.fill(past, seed)
    for future, more in ((a, 3), (b, 4)):
        place.known(fresh(past, future), more)
    return [(a, b), (past, b), (b, past)]


@pytest.mark.torture
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@pytest.mark.parametrize("made", [of_another, of_an_earlier_time])
def test_files_of_another_history_are_never_taken_in_silence(
    tmp_path: Path,
    place: Place,
    made: Callable[[Place, Path, int], list[tuple[Path, Path]]],
    torture: Torture,
) -> None:
    cases = 0
    for number in range(torture.cases(1, 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for one, other in made(place, folder, torture.seed % 1000 + 20 * number):
            cases += crossed(place, one, other, tmp_path / "m", torture)
    torture.tell(f"files {made.__name__.replace('_', ' ')}", place.name, cases)
