"""One shard: a memory with a journal of its own; knows neither the engine nor the other shards."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.cluster.messages import (
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
from unbounded.cluster.shard_files import (
    GENERATION,
    Contents,
    Findings,
    Stretch,
    drop_kept,
    findings,
    founded,
    keep,
    kept,
)
from unbounded.corpus import Vocabulary
from unbounded.datastore import Auto, Flat
from unbounded.datastore.threads import set_search_threads
from unbounded.errors import EngineError, StoreError
from unbounded.states import part, under
from unbounded.store.disk import TEMPORARY, RealDisk, lock_within, sync_folder
from unbounded.store.journal import Journal
from unbounded.store.layout import (
    journal_path,
    path_bytes,
    remove,
    snapshot_path,
    snapshot_paths,
)
from unbounded.store.records import (
    HEAD,
    WATERMARK,
    Record,
    json_payload,
    read_json,
    write_journal,
)
from unbounded.store.snapshot import Snapshot, read_arrays, read_manifest, write_snapshot
from unbounded.types import Hidden

KINDS = {"auto": Auto, "flat": Flat}

ABOUT = "shard.json"

SNAPSHOT_ENTRIES, SNAPSHOT_SHARE = 65_536, 4
"""A snapshot is written after so many entries, or one in so many of all, if that is more."""


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
            try:
                self.about = founded(self._disk, self.folder / ABOUT, about)
                self._path = journal_path(self.folder, GENERATION)
                self._open()
            except BaseException:
                self._lock.release()
                raise
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be opened ({error.strerror}); choose another place"
            ) from error

    def _open(self) -> None:
        gone = self._read_journal()
        try:
            if gone:
                # A crash came between.
                self._drop_snapshots()
            self._build()
            if gone:
                self._compact()
        except BaseException:
            self._journal.close()
            raise

    def _read_journal(self) -> bool:
        """Read and check every record; whether something is gone by one of them."""
        self._contents, gone = Contents(), False
        where = self._disk, self._path, GENERATION, self.about.get("id")

        def note(record: Record) -> None:
            nonlocal gone
            gone = self._note(record) or gone

        self._journal = Journal(*where, note, self.events, write=True)
        return gone

    def _note(self, record: Record) -> bool:
        """Take a record into the contents; whether something is gone by it."""
        if record.kind == GONE:
            return self._drop(read_json(record.payload)["documents"]) > 0
        if record.kind != ENTRIES:
            raise ValueError(f"a record of kind {record.kind}")
        piece = from_payload(record.payload)
        if piece.ordinal != self._contents.held(piece.document):
            raise ValueError(f"{piece.document!r} goes on at {piece.ordinal:,}")
        row = piece.ordinal, len(piece.words), piece.step, record.start, record.number
        self._contents.append(piece.document, *row)
        return False

    def _build(self) -> None:
        """Make the index of what the contents have, from the newest snapshot that is whole."""
        stretches = list(self._contents.stretches())
        for each in stretches[self._restored() :]:
            self._add(self._piece(each))

    def _restored(self) -> int:
        """Take over the newest snapshot of this journal that is whole; how many pieces it has."""
        self._empty()
        for path in snapshot_paths(self.folder, GENERATION):
            try:
                about, arrays = read_manifest(path)[0], read_arrays(path)
                contents = part("contents", arrays)
                if not self._known(about) or not self._contents.begins_as(contents):
                    raise ValueError("of another history than the journal")
                self.memory.load([part("memory", arrays)])
                if words := arrays["vocabulary"].tobytes().decode():
                    self._vocabulary.restore(words.split("\n"))
                if len(self.memory) != int(contents["count"].sum()):
                    raise ValueError(f"{len(self.memory):,} entries")
                return len(contents["first"])
            except (OSError, ValueError, KeyError) as error:
                self.events.append(f"{path} is damaged ({error}) and was not used")
                self._empty()
        return 0

    def _known(self, about: Snapshot) -> bool:
        """Whether a snapshot was written at a place of this journal."""
        same = about.checksum == self._journal.checksum_of(about.records)
        # Shards that were made without an identity have snapshots without a checksum.
        old = about.checksum is None and self.about.get("id") is None
        return (same or old) and about.end == self._journal.end_of(about.records)

    def _empty(self) -> None:
        kind = KINDS[self.about["index"]]
        settings = {} if self.about["exact"] is None else {"exact": self.about["exact"]}
        self.memory = kind(self.about["width"], **settings)
        self._vocabulary = Vocabulary()
        self._since = 0
        # Whoever was told numbers of words before asks again.
        self._epoch = secrets.randbits(62)

    def _add(self, piece: Piece) -> None:
        self.memory.add(piece.keys, self._vocabulary.encode(piece.words))
        self._since += len(piece.words)

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
                fresh += new.fitting()
        for piece, record in zip(fresh, self._write(fresh), strict=True):
            self._note(record)
            self._add(piece)
        if self._since >= max(SNAPSHOT_ENTRIES, len(self.memory) // SNAPSHOT_SHARE):
            self.snapshot()
        return len(self.memory)

    def _write(self, pieces: Sequence[Piece]) -> list[Record]:
        """Append pieces and sync; their records."""
        found = self._journal.append([(ENTRIES, to_payload(piece)) for piece in pieces])
        self._journal.sync()
        return found

    def forget(self, documents: Sequence[str], parts: bool = True) -> int:
        """Be as if documents had never been read, in the files too; how many entries are gone.

        With `parts`, those that a file's documents are called by, NAME#2, …, go with NAME.
        """
        like = self._contents.names_like if parts else lambda name: [name]
        known = self._contents.lengths()
        names = [one for name in documents for one in like(name) if one in known]
        if not names:
            return 0
        self._journal.append([(GONE, json_payload({"documents": names}))])
        self._journal.sync()
        # What a reader left here may hold its words.
        drop_kept(self.folder)
        gone = self._drop(names)
        self._drop_snapshots()
        self._build()
        self._compact()
        return gone

    def compact(self) -> tuple[int, int]:
        """Write journal and snapshot anew; bytes before and after."""
        before = path_bytes(self.folder)
        self._drop_snapshots()
        self._compact()
        self.snapshot()
        return before, path_bytes(self.folder)

    def check(self) -> Findings:
        """Every checksum again, and the files against what is known; what is wrong."""
        return findings(self._journal, self._contents, len(self.memory))

    def _drop(self, names: Sequence[str]) -> int:
        """Leave documents out of the contents; the index is to be made again."""
        before, old = self._contents.entries, self._contents
        self._contents = Contents()
        for each in old.stretches():
            if (name := old.documents[each.document]) not in names:
                row = (name, each.ordinal, each.count, each.step, each.start, each.number)
                self._contents.append(*row)
        return before - self._contents.entries

    def _piece(self, each: Stretch) -> Piece:
        """A piece as it lies in the journal."""
        return from_payload(self._journal.read(each.start, each.number).payload)

    def _compact(self) -> None:
        """Write a journal of what is left; the rename is the switch."""
        temporary = self._path.with_name(self._path.name + TEMPORARY)
        every = self._contents.stretches()
        left = ((ENTRIES, to_payload(self._piece(each))) for each in every)
        write_journal(self._disk, temporary, self.about.get("id"), left)
        # The mark is of the longer journal: from here on it would speak of damage.
        remove(self.folder / WATERMARK)
        try:
            self._disk.replace(temporary, self._path)
            sync_folder(self._disk, self.folder)
        finally:
            # The new one or, if it could not be put there, the old one as it was.
            self._journal.close()
            self._read_journal()

    def _drop_snapshots(self) -> None:
        """What is gone, they would know."""
        for path in snapshot_paths(self.folder, GENERATION):
            remove(path)

    def snapshot(self) -> None:
        """Write the index, so that the next opening need not make it again."""
        words = self._vocabulary.decode(np.arange(1, len(self._vocabulary)))
        arrays = {
            **under("memory", self.memory.state()),
            **under("contents", self._contents.state()),
            "vocabulary": np.frombuffer("\n".join(words).encode(), np.uint8),
        }
        records, held = self._journal.records, len(self.memory)
        path = snapshot_path(self.folder, GENERATION, records)
        where = records, self._journal.end, held, held
        about = Snapshot(path, GENERATION, *where, self._journal.checksum_of(records))
        try:
            write_snapshot(self._disk, about, arrays)
        except StoreError as error:
            self.events.append(str(error))
        self._since = 0
        for old in snapshot_paths(self.folder, GENERATION)[2:]:
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
            head = self._journal.bytes_at(each.start + HEAD.size, HEAD_BYTES)
            out[name] = max(out.get(name, 0.0), time_of(head))
        return out

    def keep(self, name: str, data: bytes) -> None:
        """Keep something small of a reader's under a name, durably."""
        keep(self._disk, self.folder, name, data)

    def kept(self, name: str) -> bytes | None:
        """What was last kept under a name."""
        return kept(self.folder, name, self.events)

    def stats(self) -> dict[str, Any]:
        """Entries, documents, words and bytes."""
        return {
            "entries": len(self.memory),
            "documents": self._contents.lengths(),
            "words": len(self._vocabulary),
            "bytes": path_bytes(self.folder),
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
        self._lock.release()
