"""A snapshot that is written while reading goes on."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.disk import Disk
from unbounded.store.snapshot import Snapshot, write_snapshot


@final
class Stopped(OSError):
    """Nobody wants it any more."""


@final
class StoppableDisk(Disk):
    """A disk on which every call fails once it is told to."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.stopped = threading.Event()

    def open(self, path: Path, flags: int) -> int:
        """As the disk does."""
        self._check()
        return self._disk.open(path, flags)

    def write(self, file: int, data: bytes | memoryview) -> int:
        """As the disk does."""
        self._check()
        return self._disk.write(file, data)

    def sync(self, file: int) -> None:
        """As the disk does."""
        self._check()
        self._disk.sync(file)

    def replace(self, source: Path, target: Path) -> None:
        """As the disk does."""
        self._check()
        self._disk.replace(source, target)

    def _check(self) -> None:
        if self.stopped.is_set():
            raise Stopped(0, "stopped")


@final
class Background:
    """Writes one snapshot in a thread of its own; the arrays must be nobody else's."""

    def __init__(
        self,
        disk: Disk,
        about: Snapshot,
        arrays: Mapping[str, np.ndarray],
        then: Callable[[], None],
    ) -> None:
        """`then` is called once it is there."""
        self.error: str | None = None
        self._disk = StoppableDisk(disk)
        self._thread = threading.Thread(target=self._write, args=(about, dict(arrays), then))
        self._thread.start()

    def _write(
        self, about: Snapshot, arrays: Mapping[str, np.ndarray], then: Callable[[], None]
    ) -> None:
        try:
            write_snapshot(self._disk, about, arrays)
            then()
        except (StoreError, OSError) as error:
            if not self._disk.stopped.is_set():
                self.error = str(error)

    @property
    def running(self) -> bool:
        """Whether it is still being written."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return once it is there, or could not be written."""
        self._thread.join()

    def stop(self) -> None:
        """Give it up; nothing of it is left when this returns, or all of it is there."""
        self._disk.stopped.set()
        self._thread.join()
