"""A memory's folder: which names there are, which format, and how to tell it from a foreign one.

    MEMORY/
      format.json               format, identity, model, settings; written last: makes the memory
      journal-GENERATION.log    what was read, in order: the truth (`records.py`)
      acknowledged              how far the journal was promised to be on disk
      snapshot-GENERATION-N/    the state after N records of that journal, rebuilt from it if lost
      steps-GENERATION-N.log    what came after that snapshot, state by state (`deltas.py`)
      lock                      held by the one writer

`compact` writes the next generation; the highest journal is the one that counts.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unbounded.errors import StoreError
from unbounded.store.disk import LOCK, TEMPORARY, Disk, sealed, unsealed, write_file
from unbounded.store.records import EMPTY, WATERMARK

FORMAT = 2
"""What this version writes, and with the numbered upgrades all that it reads."""

NAME, KIND = "format.json", "unbounded memory"

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

SHARDS = "shards"
"""The folder in which shards save their states, if the memory has some."""

NEVER = 1 << 62
"""The first generation of a memory that has none whose journal knows which memory it is of."""

UPGRADES: dict[int, Upgrade] = {1: lambda value: {**value, "id": None, "since": NEVER}}
"""From format n to n + 1: what becomes of format.json; told what it says, gives what it should.

Format 2: `id` is in the journal's first record too, from generation `since` on, and checkpoints
have the journal's running checksum.
"""

_PART = re.compile(r"journal-\d{8}\.log|snapshot-\d{8}-\d{12}|steps-\d{8}-\d{12}\.log")


def _generation(name: str) -> int | None:
    """Of which generation a file or folder of that name is a part, if it is one."""
    return int(name.partition("-")[2][:8]) if _PART.fullmatch(name) else None


def journal_path(folder: Path, generation: int) -> Path:
    """Where a generation's journal is."""
    return folder / f"journal-{generation:08}.log"


def snapshot_path(folder: Path, generation: int, records: int) -> Path:
    """Where the snapshot after so many records is."""
    return folder / f"snapshot-{generation:08}-{records:012}"


def journals(folder: Path) -> list[int]:
    """The generations of which there is a journal."""
    names = [path.name for path in folder.iterdir() if path.name.startswith("journal")]
    return [found for name in names if (found := _generation(name)) is not None]


def is_part(name: str) -> bool:
    """Whether a file or folder of that name belongs to a memory, besides those with one name."""
    return name.endswith(TEMPORARY) or _generation(name) is not None


def generation_of(folder: Path) -> int:
    """The generation that counts."""
    found = journals(folder)
    if not found:
        raise StoreError(
            f"{folder} has lost its journal (journal-….log); restore the folder from a copy"
        )
    return max(found)


def snapshot_paths(folder: Path, generation: int) -> list[Path]:
    """The snapshots of a generation, newest first."""
    return _parts(folder, "snapshot", generation)[::-1]


def delta_path(folder: Path, generation: int, records: int) -> Path:
    """Where the deltas from that snapshot on are."""
    return folder / f"steps-{generation:08}-{records:012}.log"


def delta_paths(folder: Path, generation: int) -> list[Path]:
    """The deltas of a generation, oldest first."""
    return _parts(folder, "steps", generation)


def _parts(folder: Path, kind: str, generation: int) -> list[Path]:
    every = (path for path in folder.iterdir() if path.name.startswith(kind))
    return sorted(path for path in every if _generation(path.name) == generation)


def is_new(folder: Path) -> bool:
    """Whether a memory can be made here: nothing is here, or what a crash left of making one."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is a file, and a memory is a folder; give a folder of a memory, or a new one"
        )
    names = [path.name for path in folder.iterdir()]
    if NAME in names:
        return False
    ours = {LOCK, WATERMARK, journal_path(folder, 1).name}
    strange = sorted(name for name in names if name not in ours and not name.endswith(TEMPORARY))
    if strange:
        raise StoreError(
            f"{folder} is not a memory (it has {strange[0]} and no {NAME}); give the folder of a "
            "memory, or one that does not exist yet"
        )
    first = journal_path(folder, 1)
    if first.exists() and first.stat().st_size > EMPTY:
        raise StoreError(f"{folder} has lost its {NAME}; restore that file from a copy")
    return True


def write_about(disk: Disk, folder: Path, about: Mapping[str, Any]) -> None:
    """Say what the memory is."""
    write_file(disk, folder / NAME, sealed({**about, "kind": KIND, "format": FORMAT}))


def read_about(folder: Path, upgrades: Mapping[int, Upgrade] = UPGRADES) -> dict[str, Any]:
    """What the memory is, in the present format; clear refusals of all that is none."""
    path = folder / NAME
    try:
        value = unsealed(path.read_bytes())
        kind, found = value["kind"], value["format"]
    except FileNotFoundError:
        raise StoreError(
            f"{folder} is not a memory (it has no {NAME}); give another folder"
        ) from None
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} is damaged ({str(error).splitlines()[0]}); restore it from a copy"
        ) from None
    if kind != KIND or not isinstance(found, int):
        raise StoreError(f"{path} is of {kind!r}, not of a memory; give another folder")
    newest = max([FORMAT, *(number + 1 for number in upgrades)])
    if found > newest:
        raise StoreError(
            f"{folder} was written in format {found}; this version reads up to {newest}: "
            "upgrade unbounded"
        )
    for number in range(found, newest):
        value = {**upgrades[number](value), "format": number + 1}
    return value


def remove_litter(folder: Path, generation: int) -> None:
    """Remove what a crash left behind: temporary files, and other generations."""
    for path in folder.iterdir():
        if path.name.endswith(TEMPORARY) or _generation(path.name) not in (None, generation):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder; gone already is gone."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def path_bytes(path: Path) -> int:
    """What a file takes, or a folder with all in it; what has just gone takes nothing."""
    try:
        if not path.is_dir() or path.is_symlink():
            return path.lstat().st_size
        return sum(map(path_bytes, path.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return 0
