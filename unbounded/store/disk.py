"""What a store asks of the file system: calls that can fail, whole files, one writer at a time.

A test can put a failing disk in the place of the real one.
"""

import fcntl
import json
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, final

from unbounded.errors import StoreError
from unbounded.files import parse_json

TEMPORARY = ".aside"
"""How names end that are not there yet; what a crash leaves of them is removed."""

# On macOS fsync ends when the drive has heard of it, and a power cut may still undo it.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)

LOCK = "lock"
"""The file that the one writer holds."""


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
        if _FULL_SYNC is not None:
            # Not every file system has it.
            with suppress(OSError):
                fcntl.fcntl(file, _FULL_SYNC)
                return
        os.fsync(file)

    def replace(self, source: Path, target: Path) -> None:
        """Rename, in one step."""
        os.replace(source, target)


def write_all(disk: Disk, file: int, data: bytes | bytearray | memoryview) -> None:
    """Write until all is written."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[disk.write(file, rest) :]


@contextmanager
def synced(disk: Disk, path: Path, flags: int) -> Iterator[int]:
    """A file that is on disk behind this, unless something went wrong."""
    file = disk.open(path, flags)
    try:
        yield file
        disk.sync(file)
    finally:
        os.close(file)


ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
"""How a file is opened that is written from its beginning."""


@contextmanager
def told(what: str, instead: str) -> Iterator[None]:
    """Whatever the disk refuses, as one line: what could not be done, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what} ({error.strerror}); {instead}") from error


def sync_folder(disk: Disk, folder: Path) -> None:
    """Return once the names in a folder are on disk."""
    with synced(disk, folder, os.O_RDONLY):
        pass


def write_file(disk: Disk, path: Path, data: bytes) -> None:
    """A file that is wholly there or not at all, whatever happens; synced, its name too."""
    temporary = path.with_name(f"{path.name}{TEMPORARY}")
    try:
        with synced(disk, temporary, ANEW) as file:
            write_all(disk, file, data)
        disk.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(disk, path.parent)


def sealed(value: Mapping[str, Any]) -> bytes:
    """A small value as JSON, with a checksum of itself."""
    return json.dumps({**value, "crc32": _seal(value)}, indent=1, ensure_ascii=False).encode()


def unsealed(data: bytes) -> dict[str, Any]:
    """What was sealed; `ValueError` if it is not as it was."""
    value = parse_json(data)
    if not isinstance(value, dict) or value.pop("crc32", None) != _seal(value):
        raise ValueError("its checksum is wrong")
    return value


def _seal(value: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


@final
class Lock(AbstractContextManager["Lock"]):
    """Held from its making to `release`, or to the end of its context."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._file = disk.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise StoreError(
                f"{folder} is being written by process {holder or '(unknown)'}, and one writer is "
                "all a memory can have; end that one first, or open it for reading"
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._file)

    def __exit__(self, *error: object) -> None:
        self.release()
