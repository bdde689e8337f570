"""A copy of a memory while it is written: consistent, gone on with where it stopped, verified.

The journal only grows, and what was acknowledged of it never changes: so a copy of that much is
the memory as it was at that moment. A backup is a memory's folder; the next one brings what has
come since, and after a compaction, all.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from unbounded.errors import StoreError, check_type
from unbounded.store.disk import (
    ANEW,
    LOCK,
    TEMPORARY,
    Disk,
    Lock,
    RealDisk,
    sync_folder,
    synced,
    told,
    write_all,
    write_file,
)
from unbounded.store.journal import Journal
from unbounded.store.layout import (
    NAME,
    SHARDS,
    is_part,
    journal_path,
    journals,
    read_about,
    remove,
    remove_litter,
    snapshot_paths,
)
from unbounded.store.records import START, WATERMARK
from unbounded.store.snapshot import ARRAYS, MANIFEST, Snapshot, read_arrays
from unbounded.store.store import Store

_PIECE = 1 << 24
"""Bytes of records that are copied, and synced, at once."""

_TRIES = 32
"""How often it is begun again because the memory was compacted meanwhile."""


@dataclass(frozen=True)
class Backup:
    """What a backup holds, and how many bytes had to be copied for it this time."""

    words: int
    records: int
    copied: int


def backup(
    memory: str | Path,
    target: str | Path,
    *,
    disk: Disk | None = None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Backup:
    """Bring a memory's backup up to date, or make it; the memory may be written meanwhile.

    Stopped in the middle it is gone on with the next time. Verified when it returns.
    """
    for path in (memory, target):
        check_type(path, "path", str, Path, needed="a str or a Path")
    folder, goal = Path(memory).expanduser(), Path(target).expanduser()
    with told(
        f"{target} could not be written", "what is there stays good: make room and run it again"
    ):
        return _backup(folder, goal, disk or RealDisk(), show)


def restore(
    source: str | Path,
    memory: str | Path,
    *,
    disk: Disk | None = None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Backup:
    """Make a memory from its backup, where none is yet; verified when it returns."""
    check_type(memory, "path", str, Path, needed="a str or a Path")
    if (Path(memory).expanduser() / NAME).exists():
        raise StoreError(f"{memory} is a memory already; give a folder that does not exist yet")
    return backup(source, memory, disk=disk, show=show)


def _backup(folder: Path, target: Path, disk: Disk, show: Callable[[int, int], None]) -> Backup:
    read_about(folder)
    _check_target(folder, target)
    target.mkdir(parents=True, exist_ok=True)
    with Lock(disk, target):
        for _ in range(_TRIES):
            # Compacted meanwhile, or a snapshot was replaced by a newer one.
            with suppress(FileNotFoundError), closing(Store(folder, write=False)) as source:
                return _copied(source, target, disk, show)
    raise StoreError(f"{folder} is compacted all the time; run it again later")


def _check_target(folder: Path, target: Path) -> None:
    names = [path.name for path in target.iterdir()] if target.exists() else []
    if target.exists() and target.samefile(folder):
        raise StoreError(f"{target} is the memory itself; give another folder")
    known = {NAME, LOCK, WATERMARK, SHARDS}
    if strange := sorted(name for name in names if name not in known and not is_part(name)):
        raise StoreError(f"{target} is no backup (it has {strange[0]}); give another folder")
    if NAME in names and _origin(target) != _origin(folder):
        raise StoreError(f"{target} is of another memory than {folder}; give another folder")


def _origin(folder: Path) -> tuple[object, ...]:
    about = read_about(folder)
    return about["id"], about["created"], about["model"]["fingerprint"]


def _copied(source: Store, target: Path, disk: Disk, show: Callable[[int, int], None]) -> Backup:
    generation, count = source.generation, source.journal.watermark
    path, end = journal_path(target, generation), source.journal.end_of(count) or len(START)
    had = journals(target)
    copied = 0
    if had and max(had) > generation:
        raise StoreError(f"{target} is newer than {source.folder}; give another folder")
    if not had:
        first = source.journal.end_of(source.journal.first) or 0
        write_file(disk, path, source.journal.bytes_at(0, first))
    elif generation not in had:
        # The whole journal beside the older one; the rename is the switch.
        temporary = path.with_name(path.name + TEMPORARY)
        copied += _copy(source.journal, temporary, 0, end, disk, show)
        disk.replace(temporary, path)
        sync_folder(disk, target)
    identity = None if source.old else source.about["id"]
    where = disk, path, generation, identity, lambda record: None, lambda event: None
    with closing(Journal(*where, write=True)) as journal:
        _take_back(source, journal, count)
        if journal.records > count or not _same(journal, source.journal, journal.records):
            raise StoreError(
                f"{target} went on otherwise than {source.folder}, or was restored from elsewhere; "
                "give another folder"
            )
        copied += _copy(source.journal, path, journal.end, end, disk, show)
    copied += _snapshot(source, target, generation, count, disk)
    with closing(Journal(*where, write=True)) as copy:
        _verify(source, copy, count)
    data = (source.folder / NAME).read_bytes()
    if not (target / NAME).exists() or (target / NAME).read_bytes() != data:
        write_file(disk, target / NAME, data)
    remove_litter(target, generation)
    return Backup(source.catalog.positions_at(count), count, copied)


def _copy(
    source: Journal, path: Path, start: int, end: int, disk: Disk, show: Callable[[int, int], None]
) -> int:
    """Bring a stretch of the journal over, on disk piece by piece; how many bytes."""
    with synced(disk, path, os.O_WRONLY | os.O_CREAT) as file:
        os.ftruncate(file, start)
        os.lseek(file, start, os.SEEK_SET)
        for at in range(start, end, _PIECE):
            piece = source.bytes_at(at, min(_PIECE, end - at))
            write_all(disk, file, piece)
            disk.sync(file)
            show(at + len(piece), end)
    return end - start


def _take_back(source: Store, journal: Journal, count: int) -> None:
    """Cut off what was copied and has been undone since, if the journals part where one was."""
    common = min(journal.records, count)
    while common and not _same(journal, source.journal, common):
        common -= 1
    if common < journal.records and common in source.undone:
        for path in snapshot_paths(journal.path.parent, journal.generation):
            remove(path)
        journal.cut(common)


def _same(one: Journal, other: Journal, count: int) -> bool:
    return one.checksum_of(count) == other.checksum_of(count)


def _snapshot(source: Store, target: Path, generation: int, count: int, disk: Disk) -> int:
    """Copy the newest full checkpoint, so that little has to be read again."""
    found = [one for one in source.snapshots() if one.records <= count]
    if source.generation != generation:
        raise FileNotFoundError
    copied = 0
    for snapshot in found[:1]:
        there = target / snapshot.path.name
        if not there.exists():
            copied = _copy_folder(snapshot, there, disk)
        for old in snapshot_paths(target, generation):
            if old != there:
                remove(old)
    return copied


def _copy_folder(snapshot: Snapshot, there: Path, disk: Disk) -> int:
    temporary = there.with_name(there.name + TEMPORARY)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name in (ARRAYS, MANIFEST):
        with (
            synced(disk, temporary / name, ANEW) as file,
            (snapshot.path / name).open("rb") as data,
        ):
            while piece := data.read(_PIECE):
                write_all(disk, file, piece)
    disk.replace(temporary, there)
    sync_folder(disk, there.parent)
    return sum((there / name).stat().st_size for name in (ARRAYS, MANIFEST))


def _verify(source: Store, copy: Journal, count: int) -> None:
    """Read all of it again; a backup that is not what it should be is no backup."""
    good = copy.records == count and _same(copy, source.journal, count)
    folder = copy.path.parent
    try:
        for path in snapshot_paths(folder, copy.generation):
            read_arrays(path)
    except (ValueError, KeyError):
        good = False
    if not good:
        raise StoreError(
            f"{folder} cannot be read back as {source.folder} is; check that one, and look at the "
            "disk"
        )
