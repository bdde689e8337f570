"""One shard: a memory with a journal of its own; knows neither the engine nor the other shards."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.cluster.checking import Found as Findings
from unbounded.cluster.checking import findings
from unbounded.cluster.contents import Contents, Stretch
from unbounded.cluster.pieces import (
    ENTRIES,
    GONE,
    HEAD_BYTES,
    Found,
    Piece,
    Place,
    from_payload,
    time_of,
    to_payload,
)
from unbounded.cluster.rewriting import write_journal
from unbounded.corpus import Vocabulary
from unbounded.errors import EngineError, StoreError
from unbounded.memory import Auto, Flat, Memory
from unbounded.memory.threads import set_search_threads
from unbounded.states import part, under
from unbounded.store.acknowledged import Acknowledged, read_mark
from unbounded.store.disk import ASIDE, RealDisk, sync_folder, write_file
from unbounded.store.journal import Journal, check_start, damaged, scan
from unbounded.store.layout import (
    folder_bytes,
    journal_path,
    remove,
    snapshot_path,
    snapshot_paths,
)
from unbounded.store.lock import lock_within
from unbounded.store.records import HEAD, START, json_payload, read_json, record_at, to_bytes
from unbounded.store.snapshot import (
    Snapshot,
    read_arrays,
    read_manifest,
    sealed,
    unsealed,
    write_snapshot,
)
from unbounded.types import Hidden

KINDS = {"auto": Auto, "flat": Flat}

ABOUT = "shard.json"

SNAPSHOT_ENTRIES, SNAPSHOT_SHARE = 65_536, 4
"""The index is set aside after so many entries, or one in so many of all, if that is more."""

_GENERATION = 1

_KEPT = "kept-"


@final
class Shard:
    """Entries of documents, by position; durable when `append` returns, and there once only.

    The journal holds words and keys and is the truth; the index is made again from it. A shard
    needs no network: the reader has run it.
    """

    def __init__(
        self, folder: str, about: Mapping[str, Any], *, threads: int = 1, patience: float = 60.0
    ) -> None:
        """Open the folder or make it; waits `patience` seconds for a dying predecessor's lock."""
        set_search_threads(threads)
        self.folder = Path(folder)
        self.events: list[str] = []
        self._disk = RealDisk()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_within(self._disk, self.folder, patience)
            self.about = self._described(about)
            self._open()
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be opened ({error.strerror}); choose another place"
            ) from error

    def _described(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """What the shard is; refuses to be another."""
        path = self.folder / ABOUT
        if not path.exists():
            write_file(self._disk, journal_path(self.folder, _GENERATION), START)
            write_file(self._disk, path, sealed(about))
        try:
            return unsealed(path.read_bytes())
        except ValueError as error:
            raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from None

    def _open(self) -> None:
        self._path = journal_path(self.folder, _GENERATION)
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        check_start(self._file, self._path)
        mark = read_mark(self.folder, _GENERATION) or 0
        self._records, self._end = self._restored()
        gone = False
        for record in scan(self._file, self._end, self._records):
            if record.kind == GONE:
                gone = self._drop(read_json(record.payload)["documents"]) > 0 or gone
            else:
                self._take(from_payload(record.payload), record.start, record.number)
            self._records, self._end = record.number + 1, record.end
        if self._end < mark:
            raise damaged(self._path, self._end)
        torn = os.fstat(self._file).st_size - self._end
        if torn:
            self.events.append(f"{self._path}: {torn:,} bytes, never acknowledged, were cut off")
        if gone:
            self._rebuild()
        self._journal = Journal(self._disk, self._path, self._end)
        self._mark = Acknowledged(self._disk, self.folder)
        self._mark.mark(_GENERATION, self._end)
        if gone:
            # A crash came between.
            self._compact()

    def _restored(self) -> tuple[int, int]:
        """Take over the newest snapshot that is whole; where the journal goes on from there."""
        self._empty()
        for path in snapshot_paths(self.folder, _GENERATION):
            try:
                about, arrays = read_manifest(path)[0], read_arrays(path)
                self.memory.load(part("memory", arrays))
                self._contents = Contents.restored(part("contents", arrays))
                if words := arrays["vocabulary"].tobytes().decode():
                    self._vocabulary.restore(words.split("\n"))
                self._since = 0
                return about.records, about.end
            except (OSError, ValueError, KeyError) as error:
                self.events.append(f"{path} is damaged ({error}) and was not used")
                self._empty()
        return 0, len(START)

    def _empty(self) -> None:
        kind = KINDS[self.about["index"]]
        settings = {} if self.about["exact"] is None else {"exact": self.about["exact"]}
        self.memory = Memory(kind(self.about["width"], **settings))
        self._vocabulary = Vocabulary()
        self._contents, self._since = Contents(), 0
        # Whoever was told numbers of words before asks again.
        self._epoch = secrets.randbits(62)

    def _take(self, piece: Piece, start: int, number: int) -> None:
        self.memory.add(piece.keys, self._vocabulary.encode(piece.words))
        ordinal, count = piece.ordinal, len(piece.words)
        self._contents.append(piece.document, ordinal, count, piece.step, start, number)
        self._since += count

    # Writing.

    def append(self, pieces: Sequence[Piece]) -> int:
        """Take what is new of these pieces; on disk when it returns. How many entries there are."""
        fresh: list[Piece] = []
        held: dict[str, int] = {}
        for piece in pieces:
            here = held.get(piece.document, self._contents.held(piece.document))
            if piece.ordinal > here:
                raise EngineError(
                    f"{self.folder} holds {here:,} entries of {piece.document!r}, and what comes "
                    f"follows {piece.ordinal:,}; read the document again from its beginning"
                )
            new = piece.after(min(here - piece.ordinal, len(piece.words)))
            held[piece.document] = here + len(new.words)
            if len(new.words):
                fresh.append(new)
        places = self._write([(ENTRIES, to_payload(piece)) for piece in fresh])
        for piece, (start, number) in zip(fresh, places, strict=True):
            self._take(piece, start, number)
        if self._since >= max(SNAPSHOT_ENTRIES, len(self.memory) // SNAPSHOT_SHARE):
            self.snapshot()
        return len(self.memory)

    def _write(self, parts: Sequence[tuple[int, bytes]]) -> list[tuple[int, int]]:
        """Append records and sync; where each begins, and its number."""
        if not parts:
            return []
        data = [to_bytes(kind, self._records + i, body) for i, (kind, body) in enumerate(parts)]
        starts = np.cumsum([self._end, *map(len, data)]).tolist()
        self._journal.append(b"".join(data))
        self._journal.sync()
        places = [(start, self._records + i) for i, start in enumerate(starts[:-1])]
        self._records, self._end = self._records + len(data), starts[-1]
        self._mark.mark(_GENERATION, self._end)
        return places

    def forget(self, documents: Sequence[str], parts: bool = True) -> int:
        """Be as if documents had never been read, in the files too; how many entries are gone.

        With `parts`, those that a file's documents are called by, NAME#2, …, go with NAME.
        """
        like = self._contents.names_like if parts else lambda name: [name]
        known = self._contents.lengths()
        names = [one for name in documents for one in like(name) if one in known]
        if not names:
            return 0
        self._write([(GONE, json_payload({"documents": names}))])
        # What a reader left here may hold its words.
        for path in self.folder.glob(f"{_KEPT}*"):
            remove(path)
        gone = self._drop(names)
        self._rebuild()
        self._compact()
        return gone

    def compact(self) -> tuple[int, int]:
        """Write journal and snapshot anew; bytes before and after."""
        before = folder_bytes(self.folder)
        for path in snapshot_paths(self.folder, _GENERATION):
            remove(path)
        self._compact()
        self.snapshot()
        return before, folder_bytes(self.folder)

    def check(self) -> Findings:
        """Every checksum again, and the files against what is known; what is wrong."""
        known = self._contents, len(self.memory)
        return findings(self._path, self._file, self._end, *known)

    def _drop(self, names: Sequence[str]) -> int:
        """Leave documents out of the contents; the index is to be made again."""
        before, old = self._contents.entries, self._contents
        self._contents = Contents()
        for each in old.stretches():
            if (name := old.documents[each.document]) not in names:
                row = (name, each.ordinal, each.count, each.step, each.start, each.number)
                self._contents.append(*row)
        return before - self._contents.entries

    def _rebuild(self) -> None:
        """Make the index anew from what the contents have left."""
        # A snapshot knows what is gone.
        for path in snapshot_paths(self.folder, _GENERATION):
            remove(path)
        left = list(self._contents.stretches())
        self._empty()
        for each in left:
            self._take(self._piece(each), each.start, each.number)

    def _piece(self, each: Stretch) -> Piece:
        """A piece as it lies in the journal, read by its length: pieces are long."""
        head = os.pread(self._file, HEAD.size, each.start)
        size = HEAD.size + (HEAD.unpack(head)[0] if len(head) == HEAD.size else 0)
        data = memoryview(os.pread(self._file, size, each.start))
        record = record_at(data, each.start, each.number, each.start)
        if record is None:
            raise damaged(self._path, each.start)
        return from_payload(record.payload)

    def _compact(self) -> None:
        """Write a journal of what is left; the rename is the switch."""
        aside = self._path.with_name(self._path.name + ASIDE)
        left = (self._piece(each) for each in self._contents.stretches())
        contents, end = write_journal(self._disk, aside, left)
        # The mark is of the longer journal: from here on it would speak of damage.
        remove(self.folder / "acknowledged")
        self._disk.replace(aside, self._path)
        sync_folder(self._disk, self.folder)
        self._journal.close()
        self._mark.close()
        os.close(self._file)
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._contents, self._end = contents, end
        self._records = sum(1 for _ in contents.stretches())
        self._journal = Journal(self._disk, self._path, end)
        self._mark = Acknowledged(self._disk, self.folder)
        self._mark.mark(_GENERATION, end)

    def snapshot(self) -> None:
        """Set the index aside, so that the next opening need not make it again."""
        words = self._vocabulary.decode(np.arange(1, len(self._vocabulary)))
        arrays = {
            **under("memory", self.memory.state()),
            **under("contents", self._contents.state()),
            "vocabulary": np.frombuffer("\n".join(words).encode(), np.uint8),
        }
        path = snapshot_path(self.folder, _GENERATION, self._records)
        held = len(self.memory)
        about = Snapshot(path, _GENERATION, self._records, self._end, held, held)
        try:
            write_snapshot(self._disk, about, arrays)
        except StoreError as error:
            self.events.append(str(error))
        self._since = 0
        for old in snapshot_paths(self.folder, _GENERATION)[2:]:
            remove(old)

    # Asking.

    def search(self, queries: Hidden, k: int, epoch: int, known: int) -> Found:
        """The nearest entries of each query; and the words that the reader does not know yet."""
        found = self.memory.search(queries, k)
        fresh = np.arange(known if epoch == self._epoch else 0, len(self._vocabulary))
        return Found(
            found.squared,
            found.positions.astype(np.uint32),
            found.words.astype(np.int32),
            len(self.memory),
            not self.memory.events,
            self._epoch,
            self._vocabulary.decode(fresh),
        )

    def held(self, document: str) -> int:
        """How many entries of a document there are."""
        return self._contents.held(document)

    def where(self, entries: Sequence[int]) -> list[Place]:
        """Where entries stand."""
        out = []
        for entry in entries:
            each = self._contents.stretch_of(entry)
            piece, at = self._piece(each), entry - each.first
            position = piece.first + at * piece.step
            out.append(Place(piece.document, position, int(piece.lines[at]), piece.time))
        return out

    def words(self, document: str, start: int, stop: int) -> dict[int, str]:
        """The words of a document from one position to before another, those that are here."""
        return {
            piece.first + i * piece.step: word
            for piece in self.entries(document, start, stop)
            for i, word in enumerate(piece.words)
        }

    def _pieces(self, document: str, start: int, stop: int) -> Iterator[Piece]:
        step = next((each.step for each in self._contents.stretches_of(document, 0, 1)), 1)
        for each in self._contents.stretches_of(document, start // step, stop // step + 1):
            yield self._piece(each)

    def entries(self, document: str, start: int, stop: int) -> list[Piece]:
        """What is here of a document from one position to before another, to be moved elsewhere."""
        out: list[Piece] = []
        for piece in self._pieces(document, start, stop):
            skipped = max(-(-(start - piece.first) // piece.step), 0)
            kept = piece.after(min(skipped, len(piece.words)))
            count = max(-(-(stop - kept.first) // kept.step), 0)
            if len(kept.words) and count:
                out.append(kept.upto(count))
        return out

    def texts(self, document: str, start: int, stop: int) -> list[Piece]:
        """The same without keys."""
        return [piece.without_keys() for piece in self.entries(document, start, stop)]

    def latest(self) -> dict[str, float]:
        """When something was last read of each document."""
        out: dict[str, float] = {}
        for each in self._contents.stretches():
            name = self._contents.documents[each.document]
            head = os.pread(self._file, HEAD_BYTES, each.start + HEAD.size)
            out[name] = max(out.get(name, 0.0), time_of(head))
        return out

    def keep(self, name: str, data: bytes) -> None:
        """Keep something small of a reader's under a name, durably."""
        write_file(self._disk, self.folder / f"{_KEPT}{name}", data)

    def kept(self, name: str) -> bytes | None:
        """What was last kept under a name."""
        path = self.folder / f"{_KEPT}{name}"
        return path.read_bytes() if path.exists() else None

    def stats(self) -> dict[str, Any]:
        """Entries, documents, words and bytes."""
        return {
            "entries": len(self.memory),
            "documents": self._contents.lengths(),
            "words": len(self._vocabulary),
            "bytes": folder_bytes(self.folder),
            "bytes_in_memory": self.memory.bytes,
            "process": os.getpid(),
            "folder": str(self.folder),
            "events": [*self.events, *map(str, self.memory.events)],
            **self.about,
        }

    def remove(self) -> None:
        """Close it, and remove all it had."""
        self.close()
        remove(self.folder)

    def close(self) -> None:
        """Let go of the files; a crash is as good."""
        self._journal.close()
        self._mark.close()
        os.close(self._file)
        self._lock.release()
