"""What shards that are unavailable are to be told: pieces in a journal on the reader's own disk."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.cluster.engine import Call, T
from unbounded.cluster.messages import DRAINED, ENTRIES, Found, Piece, from_payload, to_payload
from unbounded.cluster.shard_files import GENERATION, drop_kept, founded, keep, kept, names_kept
from unbounded.errors import EngineError, StoreError, Unavailable
from unbounded.files import cache_folder
from unbounded.store.disk import Lock, RealDisk, write_file
from unbounded.store.journal import Journal
from unbounded.store.layout import journal_path, remove
from unbounded.store.records import (
    EMPTY,
    HEAD,
    WATERMARK,
    Record,
    json_payload,
    new_journal,
    read_json,
)

LIMIT = 1_000_000_000
"""Bytes that a queue may take: with keys of 256 numbers a word takes a little over 1 KB."""

ABOUT = "queue.json"


def queues_of(memory: Path) -> Path:
    """Where this machine's queues for a memory are: in the user's cache directory."""
    mark = hashlib.blake2b(str(memory.absolute()).encode(), digest_size=8).hexdigest()
    return cache_folder() / "queues" / f"{memory.name}-{mark}"


def some_waits(memory: Path) -> bool:
    """Whether there is a queue for a memory that may hold something."""
    base = queues_of(memory)
    journals = base.glob("*/journal-*.log")
    some = any(names_kept(folder) for folder in base.glob("*"))
    return some or any(path.stat().st_size > EMPTY for path in journals)


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
        self._path = journal_path(folder, GENERATION)
        self._about = founded(self._disk, folder / ABOUT, about)
        for name, value in about.items():
            if (had := self._about.get(name)) != value:
                raise StoreError(
                    f"{self.folder} is a queue of another memory ({name} {had}, not {value});"
                    " remove it to go on without what waits in it"
                )
        self._open()

    def _open(self) -> None:
        self._empty()
        where = self._disk, self._path, GENERATION, self._about.get("id")
        self._journal = Journal(*where, self._take, self.events, write=True)

    def _take(self, record: Record) -> None:
        if record.kind == DRAINED:
            self._drop(int(read_json(record.payload)["shard"]))
        elif record.kind == ENTRIES:
            self._note(from_payload(record.payload), record)
        else:
            raise ValueError(f"a record of kind {record.kind}")

    def _empty(self) -> None:
        # By shard, where its records lie; by shard and document, how far they go.
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._held: dict[tuple[int, str], int] = {}
        self._words: dict[int, int] = {}

    def _note(self, piece: Piece, record: Record) -> None:
        shard, count = piece.shard, len(piece.words)
        self._places.setdefault(shard, []).append((record.start, record.number))
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
        fresh = [part for piece in pieces for part in self._new(piece).fitting() if part.words]
        parts = [(ENTRIES, to_payload(piece)) for piece in fresh]
        if self._journal.end + sum(HEAD.size + len(body) for _, body in parts) > self.limit:
            raise EngineError(
                f"the queue {self.folder} is full ({self.limit / 1e6:,.0f} MB), and the engine is "
                "still unavailable; what is in it is safe: bring the engine back and read on, or "
                "give the queue more room"
            )
        found = self._journal.append(parts)
        self._journal.sync()
        for piece, record in zip(fresh, found, strict=True):
            self._note(piece, record)

    def _new(self, piece: Piece) -> Piece:
        """What of a piece is not here yet."""
        known = self.held(piece.shard, piece.document) - piece.ordinal
        return piece.after(min(max(known, 0), len(piece.words)))

    def pieces(self, shard: int) -> Iterator[Piece]:
        """What waits for a shard, in the order it came."""
        for start, number in self._places.get(shard, []):
            yield from_payload(self._journal.read(start, number).payload)

    def every(self) -> Iterator[Piece]:
        """What waits for all shards, shard by shard."""
        for shard in self.shards:
            yield from self.pieces(shard)

    def drained(self, shard: int) -> None:
        """The shard has all that waited for it; when all have, the file is emptied."""
        self._drop(shard)
        if self._places:
            self._journal.append([(DRAINED, json_payload({"shard": shard}))])
            self._journal.sync()
            return
        self._journal.close()
        # The mark is of the longer journal.
        remove(self.folder / WATERMARK)
        write_file(self._disk, self._path, new_journal(self._about.get("id")))
        self._open()

    def keep(self, name: str, data: bytes) -> None:
        """Keep something small for the first shard under a name, durably."""
        keep(self._disk, self.folder, name, data)

    def kept(self, name: str) -> bytes | None:
        """What was last kept under a name."""
        return kept(self.folder, name, self.events)

    def taken(self) -> dict[str, bytes]:
        """All that was kept, by name."""
        every = ((name, self.kept(name)) for name in names_kept(self.folder))
        return {name: data for name, data in every if data is not None}

    def let_go(self) -> None:
        """What was kept is kept elsewhere now."""
        drop_kept(self.folder)

    def close(self) -> None:
        """Let go of the files; what waits stays."""
        self._journal.close()
        self._lock.release()


@final
class DegradedShard:
    """The methods of a shard that reading needs, and no others."""

    def __init__(self, shard: int, queue: Queue) -> None:
        self._shard, self._queue = shard, queue

    def answer(self, call: Call[T]) -> T:
        """In the place of the shard; refuses what only the shard can do."""
        if not hasattr(self, call.name):
            raise Unavailable(
                f"shard {self._shard} is unavailable, and {call.name!r} needs it; try again later"
            )
        return call.on(self)

    def append(self, pieces: Sequence[Piece]) -> int:
        """Into the queue; nothing of it can be found until the shard has it."""
        self._queue.put(pieces)
        return 0

    def search(self, queries: Sized, k: int, epoch: int, known: int) -> Found:
        """Nothing."""
        shape = len(queries), 0
        none = np.empty(shape, np.float32), np.empty(shape, np.uint32), np.empty(shape, np.int32)
        return Found(*none, 0, True, 0, [])

    def held(self, document: str) -> int:
        """What waits for it."""
        return self._queue.held(self._shard, document)

    def words(self, document: str, start: int, stop: int) -> dict[int, str]:
        """None."""
        return {}

    def keep(self, name: str, data: bytes) -> None:
        """With the queue."""
        self._queue.keep(name, data)

    def kept(self, name: str) -> bytes | None:
        """What was kept with the queue."""
        return self._queue.kept(name)

    def stats(self) -> dict[str, Any]:
        """That it is unavailable, and what waits for it."""
        waiting = self._queue.waiting(self._shard)
        return {
            "entries": 0,
            "documents": {},
            "words": 0,
            "bytes": 0,
            "bytes_in_memory": 0,
            "process": 0,
            "folder": str(self._queue.folder),
            "events": [f"unavailable; {waiting:,} words wait for it"],
        }
