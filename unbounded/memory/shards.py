"""A memory on shards: many may read into it at once, and many may ask."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.cluster import Call, Engine, Shard, Sharded
from unbounded.cluster.engine import PATIENCE, T
from unbounded.cluster.queue import Queue
from unbounded.cluster.resharding import gathered, lengths, lines_of
from unbounded.corpus import Block, Vocabulary
from unbounded.errors import EngineError, SettingError
from unbounded.experts import Cache
from unbounded.lm import Pretrained, RecurrentModel
from unbounded.memory.backend import Backend, Context, Document, Finding, Placed, Rows, Show
from unbounded.memory.forgetting import Choice, files_left, is_part_of, matched
from unbounded.memory.learned import present_names
from unbounded.model import OnlineModel, Reading
from unbounded.presets import MemoryConfig, build_online
from unbounded.store.catalog import FileNote
from unbounded.types import Ids

EXPERTS = ("static", "uniform", "adapted", "cache_128", "cache_1024", "unbounded")
"""Whom a reader asks: the shared datastore, and what is its own and small. Counts and n-grams grow
with the text, and would know one reader's words only."""

BLOCK = 1024
"""Words that are read at once."""

LEARNED, FILES = "mind", "files"
"""Under which names the first shard keeps what readers learned of whom to believe, and which files
they read."""


@final
class ShardedBackend(Backend):
    """One model, many shards. What `read` has ended with is there tomorrow.

    Each document is read from the network's first state, so a key is a function of its document
    alone: whoever reads it, whenever, in whatever order, makes the same entries, and forgetting it
    leaves no trace in others. What is there already of a document is passed over: reading is taken
    up where it stopped.
    """

    appends = False

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        model: Pretrained,
        config: MemoryConfig,
        *,
        patience: float = PATIENCE,
        queue: Queue | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.folder, self.engine = folder, engine
        self._model, self._queue, self._closed = model, queue, False
        self.events: list[str] = []
        self._known = 0
        self._size = 1 << (2 * len(model.vocabulary) - 1).bit_length()
        ours = isinstance(model.lm, RecurrentModel)
        experts = [name for name in EXPERTS if ours or name != "adapted"]
        made: list[Sharded] = []

        def datastore(vocabulary: Vocabulary) -> Sharded:
            width = model.lm.key_width
            made.append(Sharded(engine, vocabulary, width, patience=patience, queue=queue, say=say))
            return made[-1]

        self._online = build_online(model, self._size, experts, config, oov="unk", pairs=datastore)
        (self.datastore,) = made
        self._places: dict[str, tuple[int, int, int]] = {}
        self._document: str | None = None
        self._load()

    @property
    def online(self) -> OnlineModel:
        """The model of this reader."""
        return self._online

    @property
    def version(self) -> object:
        """Another one when something was read here."""
        return self._online, self.entries

    @property
    def entries(self) -> int:
        """How many words all shards have, and this reader."""
        return len(self.datastore)

    @property
    def block(self) -> int:
        """As many as a batch for the shards has."""
        return BLOCK

    @property
    def cited(self) -> Sequence[str]:
        """The shared datastore; small caches number their pairs for themselves."""
        return ["unbounded"]

    @property
    def known(self) -> int:
        """Words that shards had already."""
        return self._known

    @property
    def waiting(self) -> int:
        """How many words wait on disk for shards that are unavailable."""
        return self.datastore.waiting

    def check_usable(self, *, write: bool = False) -> None:
        """Refuse what was closed."""
        if self._closed:
            raise EngineError(f"{self.folder} was closed; open it again")

    def unnamed(self) -> str:
        """Documents are known by name and position, so that each is another."""
        return f"text {datetime.now(UTC).isoformat()}"

    # Reading.

    def read(
        self, cut: Iterable[Block], time: datetime | None, *, whole: bool
    ) -> Iterator[Reading]:
        """Read blocks; all durable at the end. What was handed to shards stays if it fails."""
        self.check_usable(write=True)
        if time is not None:
            raise SettingError("shards note themselves when a text was read; leave the time out")
        for block in cut:
            edges = np.flatnonzero(np.diff(block.document)) + 1
            for rows in np.split(np.arange(len(block.words)), edges):
                yield from self._read(block, slice(int(rows[0]), int(rows[-1]) + 1))
        self.flush()

    def _read(self, block: Block, rows: slice) -> Iterator[Reading]:
        document = block.documents[int(block.document[rows.start])]
        document = document.encode("utf-8", "replace").decode()
        words, lines = block.words[rows], block.line[rows]
        if document != self._document:
            if document in self._places:
                raise SettingError(
                    f"{document!r} goes on after another document; read one after the other"
                )
            self._online.restart()
            held = self.datastore.held_of(document)
            self._document, self._places[document] = document, (0, *held)
            self.datastore.begin(document)
        at, whole, some = self._places[document]
        self._places[document] = (at + len(words), whole, some)
        # All shards have these; some may have the next; none has the rest.
        first, second = (int(np.clip(end - at, 0, len(words))) for end in (whole, some))
        self._known += second
        if first:
            self._online.pass_over(words[:first])
            self.datastore.begin(document, at + first)
        if second > first:
            hidden, ids = self._online.pass_over(words[first:second])
            self.datastore.on_lines(lines[first:second])
            self._cache.remember(hidden, ids)
            # Here and on shards at once, an entry would be found twice.
            self.datastore.flush()
        if second < len(words):
            self._grow_vocabulary(len(self._online.vocabulary) + len(words))
            self.datastore.on_lines(lines[second:])
            yield self._online.read(words[second:])

    def take(self, document: str, words: Sequence[str], lines: Ids) -> None:
        """Add a whole document without asking what was predicted of it; durable at the end.

        What is there already stays; it must be the beginning of these words.
        """
        whole, _ = self.datastore.held_of(document)
        self._online.restart()
        self._document = None
        self.datastore.begin(document, min(whole, len(words)))
        for start in range(0, len(words), BLOCK):
            hidden, ids = self._online.pass_over(words[start : start + BLOCK])
            new = slice(min(max(whole - start, 0), len(ids)), len(ids))
            self.datastore.on_lines(lines[start : start + BLOCK][new])
            self._cache.remember(hidden[new], ids[new])
        self.flush()

    def _grow_vocabulary(self, words: int) -> None:
        while words > self._size:
            self._size *= 2
            self._online.grow_vocabulary(self._size)

    @property
    def _cache(self) -> Cache:
        cache = self._online.experts["unbounded"]
        assert isinstance(cache, Cache)
        return cache

    def flush(self) -> None:
        """Return once all that was read is on disk, and what was learned of whom to believe."""
        file = io.BytesIO()
        state = {"size": np.array([self._size]), **self._online.state()}
        np.savez(file, **state)  # type: ignore[arg-type]
        self.datastore.answer(0, Call(Shard.keep, LEARNED, file.getvalue()))

    def _load(self) -> None:
        """Believe whom the last reader believed."""
        data = self.datastore.answer(0, Call(Shard.kept, LEARNED))
        if data is None:
            return
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            state = present_names({name: arrays[name] for name in arrays.files})
        # Documents may have been forgotten since.
        state["expert.unbounded.entries"][:] = 0
        self._grow_vocabulary(int(state["size"][0]))
        self._online.load([state])

    # What is there.

    def contexts(self, entries: Sequence[int], before: int, after: int) -> list[Context]:
        """Where entries stand, with the words around them in the same document."""
        found = []
        for place in self.datastore.where(entries):
            first, last = place.position - before, place.position + after + 1
            words = self.datastore.words_of(place.document, first, last)
            number = place.position - max(first, 0)
            found.append(Context(place.document, place.line, place.time, words, number))
        return found

    def documents(self) -> list[Document]:
        """What shards have, by name; the time is that of the last word."""
        latest = self._latest()
        return [
            Document(name, words, datetime.fromtimestamp(latest.get(name, 0.0), UTC))
            for name, words in sorted(lengths(self.engine).items())
        ]

    def _latest(self) -> dict[str, float]:
        """When something was last read of each document."""
        latest: dict[str, float] = {}
        for part in self.engine.every(Call(Shard.latest)):
            for name, time in part.items():
                latest[name] = max(latest.get(name, 0.0), time)
        return latest

    def rows(self) -> Iterator[Rows]:
        """Every word, one document after the other."""
        for document, length in sorted(lengths(self.engine).items()):
            for piece in gathered(self.engine, document, length):
                yield piece.words, [document] * len(piece.words), piece.lines, piece.time

    def verb(self, name: str) -> AbstractContextManager[None]:
        """Nothing is written down: there is no way back."""
        return nullcontext()

    def undo(self, show: Show) -> tuple[str, int]:
        """Refuse: many read into shards, and what is forgotten is in no file any more."""
        raise SettingError("on shards nothing can be taken back; forget documents, or read again")

    def words_of(self, name: str) -> Iterator[Placed]:
        """What shards have under a name, in the order of its documents."""
        there = {one: n for one, n in lengths(self.engine).items() if is_part_of(one, name)}
        for document in sorted(there, key=lambda one: (len(one), one)):
            for piece in gathered(self.engine, document, there[document]):
                for line, word in zip(piece.lines.tolist(), piece.words, strict=True):
                    yield document, line, word

    def files(self) -> Mapping[str, FileNote]:
        """Whole are those of which shards have as many words as when they were read."""
        return files_left(self._noted_files(), lengths(self.engine))

    def _noted_files(self) -> dict[str, FileNote]:
        data = self.datastore.answer(0, Call(Shard.kept, FILES))
        noted = {} if data is None else json.loads(data)
        return {name: FileNote(*note) for name, note in noted.items()}

    def note_file(self, name: str, note: FileNote) -> None:
        """Keep it on the first shard."""
        self._note_files({**self._noted_files(), name: note})

    def _note_files(self, noted: Mapping[str, FileNote]) -> None:
        data = json.dumps({name: astuple(note) for name, note in noted.items()})
        self.datastore.answer(0, Call(Shard.keep, FILES, data.encode()))

    # Forgetting, and care.

    def forget(self, choice: Choice, *, dry_run: bool, show: Show) -> int:
        """Always whole documents, in every file: what was read in one depends on its beginning."""
        self.check_usable(write=True)
        self.datastore.flush()
        self.datastore.check_available()
        there, named = lengths(self.engine), choice.documents is not None
        names = self._chosen(choice, there)
        if dry_run:
            return sum(there[name] for name in names)
        noted = self.files()
        gone = self.datastore.forget(names, parts=named)
        if left := {name: note for name, note in noted.items() if name not in names}:
            self._note_files(left)
        for name in names:
            self._places.pop(name, None)
        self._document = None
        return gone

    def _chosen(self, choice: Choice, there: Mapping[str, int]) -> list[str]:
        if choice.documents is not None:
            names = []
            for document in choice.documents:
                mine = [name for name in there if is_part_of(name, document)]
                if not mine:
                    raise SettingError(
                        f"{self.folder} has no document named {document!r}; give a name as it was "
                        "read"
                    )
                names += mine
            return names
        if choice.before is not None:
            until = choice.before.timestamp()
            return sorted(name for name, time in self._latest().items() if time < until)
        if choice.matching is not None:
            splitter = self._model.tokenizer
            lines = (
                (name, splitter.plain(line))
                for name, length in there.items()
                for line in lines_of(self.engine, name, length)
            )
            return sorted(set(matched(choice.matching, lines)))
        raise SettingError(
            "words that many read into shards have no common order, so there are no last ones; "
            "give --document, --before or --matching"
        )

    def compact(self) -> tuple[int, int]:
        """Write journal and snapshot of every shard anew."""
        sizes = self._every(Call(Shard.compact))
        return sum(before for before, _ in sizes), sum(after for _, after in sizes)

    def view(self) -> "ShardedBackend":
        """None: shards forget while others ask them."""
        raise EngineError("a memory on shards has no view of its own; open it again")

    def refresh(self, show: Show) -> int | None:
        """Nothing: shards are asked anew each time."""
        return 0

    def check(self, *, deep: bool, show: Show) -> list[Finding]:
        """Every checksum on every shard again."""
        if deep:
            raise SettingError("shards have no network to read again with; leave --deep out")
        return [Finding(*each) for part in self._every(Call(Shard.check)) for each in part]

    def _every(self, call: Call[T]) -> list[T]:
        return [self.datastore.answer(shard, call) for shard in range(self.engine.count)]

    def stats(self) -> dict[str, Any]:
        """Entries, words, documents and bytes, in all and by shard."""
        shards = self.datastore.stats()
        documents = {name for shard in shards for name in shard["documents"]}
        parts = ("entries", "words", "bytes", "bytes_in_memory", "process", "folder", "events")
        return {
            "entries": (read := sum(shard["entries"] for shard in shards)),
            "words": (words := max(shard["words"] for shard in shards)),
            "words_read": read,
            "vocabulary": words,
            "documents": len(documents),
            "bytes": sum(shard["bytes"] for shard in shards),
            "shards": [{name: shard[name] for name in parts} for shard in shards],
        }

    def close(self) -> None:
        """Let go; the shards stay, and what waits for them."""
        self._closed = True
        self.engine.close()
        if self._queue is not None:
            self._queue.close()
            self._queue = None
