"""Small files beside the journal of a shard or a queue: what it is, and what readers keep there."""

import secrets
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unbounded.errors import StoreError
from unbounded.store.disk import Disk, sealed, unsealed, write_file
from unbounded.store.layout import journal_path, remove
from unbounded.store.records import EMPTY, new_journal

GENERATION = 1
"""Their journals are written anew under the same name."""

_KEPT, _SEALED, _ZIP = "kept-", b"unbounded kept 1\n", b"PK\x03\x04"


def founded(disk: Disk, path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What the folder says it is, in the file at `path`; a new one is made with an empty journal.

    `id` is in the journal's first record too; those of old folders have none.
    """
    journal = journal_path(path.parent, GENERATION)
    if not path.exists():
        if journal.exists() and journal.stat().st_size > EMPTY:
            raise StoreError(f"{path} is lost, and its journal is there; restore it from a copy")
        identity = secrets.token_hex(8)
        write_file(disk, journal, new_journal(identity))
        write_file(disk, path, sealed({**about, "id": identity}))
    if not journal.exists():
        raise StoreError(f"{path.parent} has lost its journal; restore the folder from a copy")
    try:
        return unsealed(path.read_bytes())
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from None


def keep(disk: Disk, folder: Path, name: str, data: bytes) -> None:
    """Keep something under a name, durably."""
    seal = zlib.crc32(data).to_bytes(4, "little")
    write_file(disk, folder / f"{_KEPT}{name}", _SEALED + seal + data)


def kept(folder: Path, name: str, events: list[str]) -> bytes | None:
    """What was last kept under a name; damage is said, and nothing is there."""
    path = folder / f"{_KEPT}{name}"
    if not path.exists():
        return None
    whole = path.read_bytes()
    if whole.startswith(_ZIP):
        # Written before these files had a checksum; a zip has its own.
        return whole
    head, data = whole[: len(_SEALED) + 4], whole[len(_SEALED) + 4 :]
    if head != _SEALED + zlib.crc32(data).to_bytes(4, "little"):
        events.append(f"{path} is damaged and was not used; the next reader writes it anew")
        return None
    return data


def names_kept(folder: Path) -> list[str]:
    """The names under which something is kept."""
    return [path.name.removeprefix(_KEPT) for path in folder.glob(f"{_KEPT}*")]


def drop_kept(folder: Path) -> None:
    """Remove all that was kept."""
    for path in folder.glob(f"{_KEPT}*"):
        remove(path)
