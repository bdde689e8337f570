"""Snapshots: named arrays in one file, npy after npy, and a manifest with a checksum of each."""

import io
import shutil
import threading
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unbounded.errors import StoreError
from unbounded.growable_array import reserved
from unbounded.states import NPY_HEAD, npy_header
from unbounded.store.disk import (
    ANEW,
    TEMPORARY,
    Disk,
    sealed,
    sync_folder,
    synced,
    told,
    unsealed,
    write_all,
    write_file,
)

ARRAYS, MANIFEST = "arrays.npy", "manifest.json"

ROOM = "the journal has everything: make room there and go on"
"""What to do when a checkpoint could not be written."""

READERS = 2
"""Threads that read arrays and verify their checksums, which is most of opening a large memory."""

_PIECE = 1 << 22
_ALIGNED = 64

# Smaller arrays are moved in no time when they grow.
_LARGE = 1 << 22


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot says of itself: the state after these records of that journal."""

    path: Path
    generation: int
    records: int
    """How many of the journal's records it has seen."""
    end: int
    """Where in the journal these end."""
    positions: int
    """How many words these hold, forgotten ones among them."""
    entries: int
    """How many of them are in the state."""
    checksum: int | None = None
    """The journal's running checksum there; None in what was written in format 1."""


def write_snapshot(
    disk: Disk,
    about: Snapshot,
    arrays: Mapping[str, np.ndarray],
    stopped: threading.Event | None = None,
) -> None:
    """Write beside it, sync, rename: it is wholly there or not at all.

    Another thread may have it `stopped`, which is a `StoreError`.
    """
    temporary = about.path.with_name(about.path.name + TEMPORARY)
    said = {"name": about.path.name, **asdict(about)}
    del said["path"]
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with told(f"{about.path} could not be written", ROOM):
            temporary.mkdir()
            places = _write_arrays(disk, temporary / ARRAYS, arrays, stopped)
            write_file(disk, temporary / MANIFEST, sealed({**said, "arrays": places}))
            shutil.rmtree(about.path, ignore_errors=True)
            disk.replace(temporary, about.path)
            sync_folder(disk, about.path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_arrays(
    disk: Disk, path: Path, arrays: Mapping[str, np.ndarray], stopped: threading.Event | None
) -> dict[str, dict[str, int]]:
    places: dict[str, dict[str, int]] = {}
    with synced(disk, path, ANEW) as file:
        at, held = 0, bytearray()
        for name, array in arrays.items():
            array = np.require(array, requirements="C")
            head = io.BytesIO()
            described = np.lib.format.header_data_from_array_1_0(array)
            np.lib.format.write_array_header_1_0(head, described)
            body = array.reshape(-1).view(np.uint8).data
            fill = b"\0" * (-(len(head.getvalue()) + len(body)) % _ALIGNED)
            crc, size = 0, 0
            for part in (memoryview(head.getvalue()), body, memoryview(fill)):
                for first in range(0, len(part), _PIECE):
                    if stopped is not None and stopped.is_set():
                        raise StoreError(f"{path} was stopped")
                    piece = part[first : first + _PIECE]
                    crc = zlib.crc32(piece, crc)
                    # Large pieces are not copied, so that nobody waits for this thread.
                    if len(held) + len(piece) >= _PIECE:
                        write_all(disk, file, held)
                        write_all(disk, file, piece)
                        held = bytearray()
                    else:
                        held += piece
                size += len(part)
            places[name] = {"start": at, "size": size, "crc32": crc}
            at += size
        write_all(disk, file, held)
    return places


def read_manifest(path: Path) -> tuple[Snapshot, dict[str, dict[str, int]]]:
    """What a snapshot says of itself and where its arrays are; `ValueError` if it is damaged."""
    value = unsealed((path / MANIFEST).read_bytes())
    places = value.pop("arrays")
    if value.pop("name") != path.name:
        raise ValueError("it is of another snapshot")
    return Snapshot(path=path, **value), places


def read_arrays(path: Path, only: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays, each checked, for whoever asked to keep; `ValueError` if they are damaged."""
    _, places = read_manifest(path)
    size = (path / ARRAYS).stat().st_size
    if size != sum(place["size"] for place in places.values()):
        raise ValueError(f"{ARRAYS} has {size:,} bytes")
    if only is not None:
        places = {name: places[name] for name in only}
    # Large ones first, so that both threads are done at about the same time.
    order = sorted(places, key=lambda name: -places[name]["size"])
    with ThreadPoolExecutor(READERS) as pool:
        found = pool.map(lambda name: _read_array(path / ARRAYS, places[name]), order)
        arrays = dict(zip(order, found, strict=True))
    return {name: arrays[name] for name in places}


def _read_array(path: Path, place: Mapping[str, int]) -> np.ndarray:
    with path.open("rb", buffering=0) as file:
        return _read_from(file, place)


def _read_from(file: io.FileIO, place: Mapping[str, int]) -> np.ndarray:
    first, last = place["start"], place["start"] + place["size"]
    wrong = f"{ARRAYS} is damaged between bytes {first:,} and {last:,}"
    file.seek(first)
    head = file.read(min(place["size"], NPY_HEAD))
    try:
        shape, dtype, start = npy_header(head)
    except ValueError as error:
        raise ValueError(wrong) from error
    count = int(np.prod(shape, dtype=np.int64))
    rest = place["size"] - start - count * dtype.itemsize
    if not 0 <= rest < _ALIGNED:
        raise ValueError(wrong)
    # Read where it will stay, and where it can grow, so that nobody has to copy it.
    large = count * dtype.itemsize >= _LARGE
    array = reserved(shape, dtype) if large else np.empty(shape, dtype)
    file.seek(first + start)
    crc = zlib.crc32(head[:start])
    for body in (array.reshape(-1).view(np.uint8).data, memoryview(bytearray(rest))):
        for at in range(0, len(body), _PIECE):
            piece = body[at : at + _PIECE]
            if file.readinto(piece) != len(piece):
                raise ValueError(wrong)
            crc = zlib.crc32(piece, crc)
    if crc != place["crc32"]:
        raise ValueError(wrong)
    return array
