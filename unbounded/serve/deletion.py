"""Taking a memory away so that none of its words is on disk: now, or at the next start."""

import os
import shutil
import time
from pathlib import Path

from unbounded.errors import StoreError
from unbounded.serve.refusals import Refused
from unbounded.store.disk import Lock, RealDisk, sync_folder

GONE = ".deleted-"


def delete(root: Path, name: str) -> None:
    """Take a memory out of sight in one step, then away; all gone when this returns.

    Links are refused: to take a link away would leave the words, and to follow it would be to
    delete in a folder that nobody gave us.
    """
    folder = root / name
    if folder.is_symlink() or any(path.is_symlink() for path in folder.rglob("*")):
        raise Refused(
            409, "is_link", "that memory is, or has in it, a link to elsewhere; delete it there"
        )
    disk = RealDisk()
    lock = Lock(disk, folder)
    try:
        aside = root / f"{GONE}{name}-{time.time_ns()}"
        os.rename(folder, aside)
        sync_folder(disk, root)
        _away(aside)
        sync_folder(disk, root)
    finally:
        lock.release()


def finish(root: Path) -> list[str]:
    """Take away what was being deleted when the service ended; what of that could not be done."""
    failed = []
    for path in root.glob(f"{GONE}*"):
        try:
            _away(path)
        except StoreError as error:
            failed.append(str(error))
    return failed


def _away(path: Path) -> None:
    try:
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    except OSError as error:
        raise StoreError(
            f"{path} could not be taken away whole ({error.strerror}); the next start tries again"
        ) from error
