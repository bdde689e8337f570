"""A real disk on which a chosen call fails, or which writes little at a time."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import final

from unbounded.store.disk import Disk, RealDisk


@final
class FailingDisk(Disk):
    """Fails at the nth call of one kind (`open`, `write`, `sync`, `replace`) and from then on.

    A write that fails has written a part first, as on a full disk. `most` is how many bytes one
    write takes at most; `lasting` is how many calls fail.
    """

    def __init__(
        self,
        kind: str = "",
        at: int = -1,
        code: int = errno.EIO,
        most: int = 1 << 30,
        lasting: int = 1,
    ) -> None:
        self.real = RealDisk()
        self.counts = {"open": 0, "write": 0, "sync": 0, "replace": 0}
        self._kind, self._at, self._code, self._most, self._lasting = kind, at, code, most, lasting

    def _fails(self, kind: str) -> bool:
        count = self.counts[kind]
        self.counts[kind] += 1
        return kind == self._kind and self._at <= count < self._at + self._lasting

    def _error(self, path: Path | None = None) -> OSError:
        return OSError(self._code, os.strerror(self._code), None if path is None else str(path))

    def open(self, path: Path, flags: int) -> int:
        if self._fails("open"):
            raise self._error(path)
        return self.real.open(path, flags)

    def write(self, file: int, data: bytes | memoryview) -> int:
        view = memoryview(data)
        if self._fails("write"):
            self.real.write(file, view[: len(view) // 2])
            raise self._error()
        return self.real.write(file, view[: self._most])

    def sync(self, file: int) -> None:
        if self._fails("sync"):
            raise self._error()
        # Nobody cuts the power here, and waiting for the disk would take minutes.

    def replace(self, source: Path, target: Path) -> None:
        if self._fails("replace"):
            raise self._error(target)
        self.real.replace(source, target)


class Killed(BaseException):
    """The process is gone: nothing more is written, whatever is tried."""


@final
class WatchedDisk(Disk):
    """A disk on which somebody looks before each call; from call `dies_at` on nobody is there."""

    def __init__(self, disk: Disk, watch: Callable[[], None], dies_at: int = 1 << 60) -> None:
        self.calls, self._disk, self._watch, self._dies_at = 0, disk, watch, dies_at

    def _look(self) -> None:
        self.calls += 1
        if self.calls > self._dies_at:
            raise Killed
        self._watch()

    def open(self, path: Path, flags: int) -> int:
        self._look()
        return self._disk.open(path, flags)

    def write(self, file: int, data: bytes | memoryview) -> int:
        if self.calls + 1 > self._dies_at:
            self._disk.write(file, memoryview(data)[: len(data) // 2])
        self._look()
        return self._disk.write(file, data)

    def sync(self, file: int) -> None:
        self._look()
        self._disk.sync(file)

    def replace(self, source: Path, target: Path) -> None:
        self._look()
        self._disk.replace(source, target)
