"""A shard's journal written anew, of what is left."""

import os
from collections.abc import Iterable
from pathlib import Path

from unbounded.cluster.contents import Contents
from unbounded.cluster.pieces import ENTRIES, Piece, to_payload
from unbounded.store.disk import Disk, write_all
from unbounded.store.records import START, to_bytes


def write_journal(disk: Disk, path: Path, pieces: Iterable[Piece]) -> tuple[Contents, int]:
    """A journal of these pieces, synced; its table of contents, and where it ends."""
    file = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    end, contents = len(START), Contents()
    try:
        write_all(disk, file, START)
        for number, piece in enumerate(pieces):
            data = to_bytes(ENTRIES, number, to_payload(piece))
            write_all(disk, file, data)
            count = len(piece.words)
            contents.append(piece.document, piece.ordinal, count, piece.step, end, number)
            end += len(data)
        disk.sync(file)
    finally:
        os.close(file)
    return contents, end
