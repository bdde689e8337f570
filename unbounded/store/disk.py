"""What a store asks of the file system; a test can put a failing one in its place."""

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import final


class Disk(ABC):
    """The calls that can fail on a full, broken or read-only disk."""

    @abstractmethod
    def open(self, path: Path, flags: int) -> int:
        """A file descriptor."""

    @abstractmethod
    def write(self, file: int, data: bytes | memoryview) -> int:
        """Write some of the data; how many bytes were."""

    @abstractmethod
    def sync(self, file: int) -> None:
        """Return once all that was written is on disk."""

    @abstractmethod
    def replace(self, source: Path, target: Path) -> None:
        """Rename, in one step."""


@final
class RealDisk(Disk):
    """The file system as it is."""

    def open(self, path: Path, flags: int) -> int:
        """Open for everything that the user's mask allows; never handed to other programs."""
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, file: int, data: bytes | memoryview) -> int:
        """One call, which may write less than all."""
        return os.write(file, data)

    def sync(self, file: int) -> None:
        """The file's content and size."""
        os.fsync(file)

    def replace(self, source: Path, target: Path) -> None:
        """Rename, in one step."""
        os.replace(source, target)


def write_all(disk: Disk, file: int, data: bytes | bytearray | memoryview) -> None:
    """Write until all is written."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[disk.write(file, rest) :]


def sync_folder(disk: Disk, folder: Path) -> None:
    """Return once the names in a folder are on disk."""
    file = disk.open(folder, os.O_RDONLY)
    try:
        disk.sync(file)
    finally:
        os.close(file)


def write_file(disk: Disk, path: Path, data: bytes) -> None:
    """A file that is wholly there or not at all, whatever happens; synced, its name too."""
    aside = path.with_name(f"{path.name}{ASIDE}")
    try:
        file = disk.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(disk, file, data)
            disk.sync(file)
        finally:
            os.close(file)
        disk.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(disk, path.parent)


ASIDE = ".aside"
"""How names end that are not there yet; what a crash leaves of them is removed."""
