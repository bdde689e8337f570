"""What shards that are away are to be told: pieces in a journal on the reader's own disk."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from unbounded.cluster.pieces import DRAINED, ENTRIES, Piece, from_payload, to_payload
from unbounded.errors import EngineError, StoreError
from unbounded.files import cache_folder
from unbounded.store.acknowledged import Acknowledged, read_mark
from unbounded.store.disk import RealDisk, write_file
from unbounded.store.journal import Journal, check_start, damaged, read_record, scan
from unbounded.store.layout import journal_path, remove
from unbounded.store.lock import Lock
from unbounded.store.records import START, json_payload, read_json, to_bytes
from unbounded.store.snapshot import sealed, unsealed

LIMIT = 1_000_000_000
"""Bytes that a queue may take: with keys of 256 numbers a word takes a little over 1 KB."""

ABOUT = "queue.json"

_GENERATION = 1

_KEPT = "kept-"


def queues_of(memory: Path) -> Path:
    """Where this machine's queues for a memory are: in the user's cache directory."""
    mark = hashlib.blake2b(str(memory.absolute()).encode(), digest_size=8).hexdigest()
    return cache_folder() / "queues" / f"{memory.name}-{mark}"


def some_waits(memory: Path) -> bool:
    """Whether there is a queue for a memory that may hold something."""
    base = queues_of(memory)
    journals = base.glob("*/journal-*.log")
    kept = any(True for _ in base.glob(f"*/{_KEPT}*"))
    return kept or any(path.stat().st_size > len(START) for path in journals)


def own_queue(memory: Path, about: Mapping[str, Any], limit: int = LIMIT) -> "Queue":
    """A queue for this process; it takes over what those left that have ended."""
    base = queues_of(memory)
    mine: Queue | None = None
    number = 0
    while mine is None or (base / str(number)).exists():
        folder = base / str(number)
        number += 1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = Lock(RealDisk(), folder)
        except StoreError:
            # Another reader's.
            continue
        try:
            queue = Queue(folder, lock, about, limit)
        except BaseException:
            lock.release()
            raise
        if mine is None:
            mine = queue
            continue
        try:
            for piece in list(queue.every()):
                mine.put([piece])
            for name, data in queue.taken().items():
                mine.keep(name, data)
            remove(folder)
        finally:
            queue.close()
    return mine


@final
class Queue:
    """Pieces in their order, on disk when `put` returns; each once, by document and position."""

    def __init__(self, folder: Path, lock: Lock, about: Mapping[str, Any], limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.events: list[str] = []
        self._lock, self._disk = lock, RealDisk()
        self._path = journal_path(folder, _GENERATION)
        self._described(about)
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._open()

    def _described(self, about: Mapping[str, Any]) -> None:
        path = self.folder / ABOUT
        if not path.exists():
            write_file(self._disk, self._path, START)
            write_file(self._disk, path, sealed(about))
        try:
            had = unsealed(path.read_bytes())
        except ValueError as error:
            raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from None
        for name, value in about.items():
            if had[name] != value:
                raise StoreError(
                    f"{self.folder} is a queue of another memory ({name} {had[name]}, not {value});"
                    " remove it to go on without what waits in it"
                )

    def _open(self) -> None:
        check_start(self._file, self._path)
        self._empty()
        number, end = 0, len(START)
        for record in scan(self._file, end, 0):
            if record.kind == DRAINED:
                self._drop(int(read_json(record.payload)["shard"]))
            else:
                self._note(from_payload(record.payload), record.start, record.number)
            number, end = record.number + 1, record.end
        if end < (read_mark(self.folder, _GENERATION) or 0):
            raise damaged(self._path, end)
        torn = os.fstat(self._file).st_size - end
        if torn:
            self.events.append(f"{self._path}: {torn:,} bytes, never acknowledged, were cut off")
        self._records, self._end = number, end
        self._journal = Journal(self._disk, self._path, end)
        self._mark = Acknowledged(self._disk, self.folder)
        self._mark.mark(_GENERATION, end)

    def _empty(self) -> None:
        # By shard, where its records lie; by shard and document, how far they go.
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._held: dict[tuple[int, str], int] = {}
        self._words: dict[int, int] = {}

    def _note(self, piece: Piece, start: int, number: int) -> None:
        shard, count = piece.shard, len(piece.words)
        self._places.setdefault(shard, []).append((start, number))
        self._held[shard, piece.document] = piece.ordinal + count
        self._words[shard] = self._words.get(shard, 0) + count

    def _drop(self, shard: int) -> None:
        self._places.pop(shard, None)
        self._words.pop(shard, None)
        self._held = {key: held for key, held in self._held.items() if key[0] != shard}

    @property
    def shards(self) -> list[int]:
        """The shards for which something waits."""
        return sorted(self._places.keys() | ({0} if self.taken() else set()))

    def waiting(self, shard: int) -> int:
        """How many words wait for a shard."""
        return self._words.get(shard, 0)

    def held(self, shard: int, document: str) -> int:
        """How many entries of a document a shard will have, as far as is known here."""
        return self._held.get((shard, document), 0)

    def put(self, pieces: Sequence[Piece]) -> None:
        """Take what is new of these pieces; on disk when it returns."""
        fresh = [new for piece in pieces if len((new := self._new(piece)).words)]
        if not fresh:
            return
        data = [
            to_bytes(ENTRIES, self._records + i, to_payload(piece)) for i, piece in enumerate(fresh)
        ]
        if self._end + sum(map(len, data)) > self.limit:
            raise EngineError(
                f"the queue {self.folder} is full ({self.limit / 1e6:,.0f} MB), and the engine is "
                "still away; what is in it is safe: bring the engine back and read on, or give "
                "the queue more room"
            )
        self._write(data)
        start, number = self._end, self._records
        for piece, each in zip(fresh, data, strict=True):
            self._note(piece, start, number)
            start, number = start + len(each), number + 1
        self._end, self._records = start, number

    def _new(self, piece: Piece) -> Piece:
        """What of a piece is not here yet."""
        known = self.held(piece.shard, piece.document) - piece.ordinal
        return piece.after(min(max(known, 0), len(piece.words)))

    def _write(self, data: Sequence[bytes]) -> None:
        self._journal.append(b"".join(data))
        self._journal.sync()
        self._mark.mark(_GENERATION, self._journal.end)

    def pieces(self, shard: int) -> Iterator[Piece]:
        """What waits for a shard, in the order it came."""
        for start, number in self._places.get(shard, []):
            yield from_payload(read_record(self._file, self._path, start, number).payload)

    def every(self) -> Iterator[Piece]:
        """What waits for all shards, shard by shard."""
        for shard in self.shards:
            yield from self.pieces(shard)

    def drained(self, shard: int) -> None:
        """The shard has all that waited for it; when all have, the file is emptied."""
        self._drop(shard)
        if self._places:
            record = to_bytes(DRAINED, self._records, json_payload({"shard": shard}))
            self._write([record])
            self._end, self._records = self._end + len(record), self._records + 1
            return
        self._journal.close()
        self._mark.close()
        os.close(self._file)
        # The mark is of the longer journal.
        remove(self.folder / "acknowledged")
        write_file(self._disk, self._path, START)
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._open()

    def keep(self, name: str, data: bytes) -> None:
        """Keep something small for the first shard under a name, durably."""
        write_file(self._disk, self.folder / f"{_KEPT}{name}", data)

    def kept(self, name: str) -> bytes | None:
        """What was last kept under a name."""
        path = self.folder / f"{_KEPT}{name}"
        return path.read_bytes() if path.exists() else None

    def taken(self) -> dict[str, bytes]:
        """All that was kept, by name."""
        return {p.name.removeprefix(_KEPT): p.read_bytes() for p in self.folder.glob(f"{_KEPT}*")}

    def let_go(self) -> None:
        """What was kept is kept elsewhere now."""
        for path in self.folder.glob(f"{_KEPT}*"):
            remove(path)

    def close(self) -> None:
        """Let go of the files; what waits stays."""
        self._journal.close()
        self._mark.close()
        os.close(self._file)
        self._lock.release()
