"""A memory moved: onto shards, onto another number of them, or back to one place."""

from pathlib import Path

from unbounded.errors import SettingError
from unbounded.memory.backend import Show, unheard
from unbounded.memory.opening import open as open_memory
from unbounded.store.backup import backup
from unbounded.store.disk import RealDisk
from unbounded.store.layout import read_about, write_about


def move_memory(
    source: Path,
    target: Path,
    engine: str | None,
    model: Path | None = None,
    show: Show = unheard,
) -> int:
    """Copy a memory to another folder, with its keys on these shards, or on none; its entries.

    The journal is copied and verified, and what it holds is read again. Begun again after it was
    stopped, it goes on. The source stays as it is.
    """
    if source.absolute() == target.absolute():
        raise SettingError(f"{source} cannot be moved onto itself; give another folder")
    backup(source, target)
    about = read_about(target)
    if about.get("shards") is not None:
        write_about(RealDisk(), target, {**about, "shards": None})
    with open_memory(target, model, engine=engine, show=show) as memory:
        return len(memory)
