"""A shard's journal written anew, of what is left."""

import os
from collections.abc import Iterable
from pathlib import Path

from unbounded.cluster.messages import ENTRIES, Piece, to_payload
from unbounded.store.disk import Disk, write_all
from unbounded.store.records import START, identity_parts, to_bytes


def write_journal(disk: Disk, path: Path, identity: str | None, pieces: Iterable[Piece]) -> None:
    """A journal of these pieces, synced."""
    file = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    first = identity_parts(identity)
    try:
        write_all(disk, file, START)
        for number, (kind, payload) in enumerate(first):
            write_all(disk, file, to_bytes(kind, number, payload))
        for number, piece in enumerate(pieces, len(first)):
            write_all(disk, file, to_bytes(ENTRIES, number, to_payload(piece)))
        disk.sync(file)
    finally:
        os.close(file)
