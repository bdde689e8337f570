"""Writing the journal anew without what was forgotten, so that no file holds it any more."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.catalog import Catalog, Left
from unbounded.store.disk import TEMPORARY, Disk, sync_folder, write_all
from unbounded.store.journal import chained
from unbounded.store.layout import journal_path, remove, snapshot_path
from unbounded.store.records import (
    DOCUMENT,
    FILE,
    HEAD,
    START,
    WORDS,
    Words,
    identity_parts,
    json_payload,
    to_bytes,
    words_payload,
)
from unbounded.store.snapshot import Snapshot, write_snapshot

Blocks = Iterable[tuple[Words, Left]]


def compact(
    disk: Disk,
    folder: Path,
    generation: int,
    identity: str | None,
    catalog: Catalog,
    blocks: Blocks,
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write that generation beside the present one; the rename of its journal is the switch.

    Before the rename the old generation counts, after it the new one, and opening removes the
    other: a crash at any moment leaves one whole memory.
    """
    path = journal_path(folder, generation)
    temporary = path.with_name(path.name + TEMPORARY)
    snapshot: Snapshot | None = None
    try:
        records, end, checksum = _write_left(disk, temporary, identity, catalog, blocks)
        where, left = snapshot_path(folder, generation, records), catalog.entries
        snapshot = Snapshot(where, generation, records, end, left, left, checksum)
        write_snapshot(disk, snapshot, arrays)
        disk.replace(temporary, path)
        # Here it counts, whatever happens next.
        snapshot = None
        sync_folder(disk, folder)
    except (OSError, StoreError) as error:
        remove(temporary)
        if snapshot is not None:
            remove(snapshot.path)
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"{path} could not be written ({error.strerror}); nothing but what was forgotten "
            "can be lost: make room there and compact again"
        ) from error


def _write_left(
    disk: Disk, path: Path, identity: str | None, catalog: Catalog, blocks: Blocks
) -> tuple[int, int, int]:
    """Write what is left to a file; how many records, where they end, their running checksum."""
    file = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(disk, file, START)
        number, end, checksum = 0, len(START), 0
        first = identity_parts(identity)
        for kind, payload in chain(first, records_left(catalog, blocks)):
            data = to_bytes(kind, number, payload)
            write_all(disk, file, data)
            number, end = number + 1, end + len(data)
            checksum = chained(checksum, HEAD.unpack_from(data)[1])
        disk.sync(file)
    finally:
        os.close(file)
    return number, end, checksum


def records_left(catalog: Catalog, blocks: Blocks) -> Iterator[tuple[int, bytes]]:
    """Documents that still have words, these, cut as they were read, and files they are of."""
    numbers: dict[int, int] = {}
    for words, left in blocks:
        runs = _runs_left(words, left)
        if not len(runs):
            continue
        for old in dict.fromkeys(runs[:, 0].tolist()):
            if old not in numbers:
                numbers[old] = len(numbers)
                named = catalog.documents[old]
                yield DOCUMENT, json_payload({"name": named.name, "time": named.time})
        runs[:, 0] = [numbers[old] for old in runs[:, 0].tolist()]
        every = words.words
        kept = every if left.all() else [every[i] for i in np.flatnonzero(left)]
        yield WORDS, words_payload(words.time, runs, kept)
    there = {catalog.documents[old].name for old in numbers}
    for name, (checksum, count) in catalog.files.items():
        if name in there:
            value = {"name": name, "checksum": checksum, "words": count}
            yield FILE, json_payload(value)


def _runs_left(words: Words, left: np.ndarray) -> np.ndarray:
    starts = np.cumsum(words.runs[:, 2]) - words.runs[:, 2]
    runs = words.runs.copy()
    runs[:, 2] = np.add.reduceat(left.astype(np.int32), starts)
    return runs[runs[:, 2] > 0]
