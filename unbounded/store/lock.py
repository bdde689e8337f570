"""One writer at a time; the system lets go of the lock when the process ends, however it ends."""

import fcntl
import os
import time
from pathlib import Path
from typing import final

from unbounded.errors import StoreError
from unbounded.store.disk import Disk

NAME = "lock"


@final
class Lock:
    """Held from its making to `release`."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._file = disk.open(folder / NAME, os.O_RDWR | os.O_CREAT)
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


def lock_within(disk: Disk, folder: Path, patience: float) -> Lock:
    """The lock, once another has let go of it; refused if that takes longer than `patience`."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return Lock(disk, folder)
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
