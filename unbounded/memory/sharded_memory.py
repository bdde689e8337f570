"""A memory on shards, opened: many may read into it at once, and many may ask."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np

from unbounded.cluster import Address, Engine, Sharded
from unbounded.cluster.connecting import apart, described, opened
from unbounded.cluster.engine import PATIENCE
from unbounded.cluster.queue import LIMIT, Queue, own_queue, some_waits
from unbounded.cluster.rpc_client import drain
from unbounded.corpus import Block, Line, Vocabulary, blocks, lines_of, read_sentences
from unbounded.errors import SettingError
from unbounded.experts import Cache
from unbounded.lm import Pretrained, RecurrentModel, load_model
from unbounded.memory.export import export_shards
from unbounded.memory.forgetting import chosen_documents
from unbounded.memory.integrity import Finding
from unbounded.memory.learned import present_names
from unbounded.memory.opening import recorded
from unbounded.memory.prediction import Prediction
from unbounded.memory.readings import Reading
from unbounded.memory.sampling import SamplingParams, after, generate
from unbounded.memory.shard_prediction import foreseen
from unbounded.model import OnlineModel
from unbounded.model import Reading as BlockReading
from unbounded.presets import MemoryConfig, build_online
from unbounded.types import Ids

EXPERTS = ("static", "uniform", "adapted", "cache_128", "cache_1024", "unbounded")
"""Whom a reader asks: the shared memory, and what is its own and small. Counts and n-grams grow
with the text, and would know one reader's words only."""

BLOCK = 1024
"""Words that are read at once."""

MIND = "mind"

WHEN_AWAY = ("stop", "queue")


def open_sharded(
    path: str | Path,
    engine: str,
    model: Pretrained | str | Path | None = None,
    *,
    config: MemoryConfig | None = None,
    threads: int = 1,
    when_away: str = "stop",
    patience: float = PATIENCE,
    queue_bytes: int = LIMIT,
    say: Callable[[str], None] = lambda line: None,
) -> "ShardedMemory":
    """Open a memory on the shards of an engine, and make it if there is none.

    `engine` is an address such as `ray://HOST:PORT`; `config` is for a new memory, and stays. If
    shards stay away for `patience` seconds, reading stops, or with `when_away="queue"` goes on
    without them: what they miss waits on disk, and `say` is told. It is handed on when they are
    back, or when the memory is next opened from this machine.
    """
    if when_away not in WHEN_AWAY:
        raise SettingError(f"{when_away!r} when shards are away; use {' or '.join(WHEN_AWAY)}")
    folder = Path(path)
    Address.parse(engine)
    had = described(folder)
    if model is None:
        model = recorded(folder, None if had is None else had["path"])
    loaded = model if isinstance(model, Pretrained) else load_model(Path(model))
    config = config or MemoryConfig(**({} if had is None else had["settings"]))
    if config.kernel is not None or config.local_kernel is not None:
        raise SettingError("a memory on shards learns its kernels; leave the kernel out")
    about = {
        "width": loaded.lm.key_width,
        "index": config.index,
        "exact": None,
        "model": loaded.fingerprint,
        "path": None if isinstance(model, Pretrained) else str(Path(model).absolute()),
        "settings": asdict(config),
    }
    if had is not None:
        # Another machine may have the same model elsewhere.
        about["path"] = had["path"]
    if when_away == "stop":
        shards = opened(folder, engine, about, threads=threads, patience=patience)
    else:
        shards = apart(folder, engine, about, threads=threads, patience=patience)
    queue = None
    if when_away == "queue" or some_waits(folder):
        known = {name: about[name] for name in ("model", "width")}
        queue = own_queue(folder, {**known, "shards": shards.count}, queue_bytes)
        for event in queue.events:
            say(event)
    if when_away == "stop" and queue is not None:
        drain(shards, queue, patience, say)
        queue.close()
        queue = None
    return ShardedMemory(folder, shards, loaded, config, patience=patience, queue=queue, say=say)


@final
class ShardedMemory:
    """One model, many shards. What `follow` has ended with is there tomorrow.

    Each document is read from the network's first state, so a key is a function of its document
    alone: whoever reads it, whenever, in whatever order, makes the same entries, and forgetting it
    leaves no trace in others.
    """

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
        self.folder, self.engine, self.model, self._queue = folder, engine, model, queue
        self.events: list[str] = []
        self.known = 0
        """Words that were there already, and were not read again."""
        self._size = 1 << (2 * len(model.vocabulary) - 1).bit_length()
        ours = isinstance(model.lm, RecurrentModel)
        experts = [name for name in EXPERTS if ours or name != "adapted"]
        made: list[Sharded] = []

        def pairs(vocabulary: Vocabulary) -> Sharded:
            width = model.lm.key_width
            made.append(Sharded(engine, vocabulary, width, patience=patience, queue=queue, say=say))
            return made[-1]

        self.online: OnlineModel = build_online(model, self._size, experts, config, pairs=pairs)
        (self.memory,) = made
        self._places: dict[str, tuple[int, int, int]] = {}
        self._document: str | None = None
        self._recall()

    def __len__(self) -> int:
        return len(self.memory)

    @property
    def waiting(self) -> int:
        """How many words wait on disk for shards that are away."""
        return self.memory.waiting

    # Reading.

    def follow(self, lines: Iterable[Line]) -> Iterator[BlockReading]:
        """Read lines, such as a `Reader`, a block at a time; all durable at the end.

        What is there already of a document is passed over: reading is taken up where it stopped.
        """
        for block in blocks(read_sentences(lines, self.model.tokenizer), BLOCK):
            edges = np.flatnonzero(np.diff(block.document)) + 1
            for rows in np.split(np.arange(len(block.words)), edges):
                yield from self._read(block, slice(int(rows[0]), int(rows[-1]) + 1))
        self.flush()

    def _read(self, block: Block, rows: slice) -> Iterator[BlockReading]:
        document = block.documents[int(block.document[rows.start])]
        document = document.encode("utf-8", "replace").decode()
        words, lines = block.words[rows], block.line[rows]
        if document != self._document:
            if document in self._places:
                raise SettingError(
                    f"{document!r} goes on after another document; read one after the other"
                )
            self.online.restart()
            self._document, self._places[document] = document, (0, *self.memory.held_of(document))
            self.memory.begin(document)
        at, whole, some = self._places[document]
        self._places[document] = (at + len(words), whole, some)
        # All shards have these; some may have the next; none has the rest.
        first, second = (int(np.clip(end - at, 0, len(words))) for end in (whole, some))
        self.known += second
        if first:
            self.online.pass_over(words[:first])
            self.memory.begin(document, at + first)
        if second > first:
            hidden, ids = self.online.pass_over(words[first:second])
            self.memory.on_lines(lines[first:second])
            self._cache.remember(hidden, ids)
            # Here and on shards at once, an entry would be found twice.
            self.memory.flush()
        if second < len(words):
            self._grow_vocabulary(len(self.online.vocabulary) + len(words))
            self.memory.on_lines(lines[second:])
            yield self.online.read(words[second:])

    def take(self, document: str, words: Sequence[str], lines: Ids) -> None:
        """Remember a whole document without asking what was foreseen of it; durable at the end.

        What is there already stays; it must be the beginning of these words.
        """
        whole, _ = self.memory.held_of(document)
        self.online.restart()
        self._document = None
        self.memory.begin(document, min(whole, len(words)))
        for start in range(0, len(words), BLOCK):
            hidden, ids = self.online.pass_over(words[start : start + BLOCK])
            new = slice(min(max(whole - start, 0), len(ids)), len(ids))
            self.memory.on_lines(lines[start : start + BLOCK][new])
            self._cache.remember(hidden[new], ids[new])
        self.flush()

    def _grow_vocabulary(self, words: int) -> None:
        while words > self._size:
            self._size *= 2
            self.online.grow_vocabulary(self._size)

    @property
    def _cache(self) -> Cache:
        cache = self.online.experts["unbounded"]
        assert isinstance(cache, Cache)
        return cache

    def flush(self) -> None:
        """Return once all that was read is on disk, and what was learned of whom to believe."""
        file = io.BytesIO()
        mind = {"size": np.array([self._size]), **self.online.state()}
        np.savez(file, **mind)  # type: ignore[arg-type]
        self.memory.answer(0, "keep", MIND, file.getvalue())

    def _recall(self) -> None:
        """Believe whom the last reader believed."""
        data = self.memory.answer(0, "kept", MIND)
        if data is None:
            return
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            mind = present_names({name: arrays[name] for name in arrays.files})
        # Documents may have been forgotten since.
        mind["expert.unbounded.entries"][:] = 0
        self._grow_vocabulary(int(mind["size"][0]))
        self.online.load(mind)

    # Asking.

    def predict(self, text: str = "", n: int = 10, *, sources: int = 3) -> Prediction:
        """The likeliest next words after a text, and the passages behind them; teaches nothing."""
        if n < 1:
            raise SettingError(f"{n} words were asked for; ask for at least 1")
        return foreseen(self._after(text), self.memory, n, sources, self.model.tokenizer)

    def _after(self, text: str) -> OnlineModel:
        """The model behind a text that goes on."""
        return after(self.online, self._unfinished(text))

    def _unfinished(self, text: str) -> list[str]:
        found = read_sentences(lines_of(text, "text", 1), self.model.tokenizer)
        return [word for sentence in found for word in sentence.words][:-1]

    def scoring(self, lines: Iterable[Line]) -> Iterator[Reading]:
        """What each word's probability would be, a block at a time; teaches nothing."""
        model = self.online
        for block in blocks(read_sentences(lines, self.model.tokenizer), BLOCK):
            reading, model = model.peek(block.words)
            yield Reading.of(reading, self.model.tokenizer.characters(reading.words))

    def complete(
        self,
        text: str = "",
        max_words: int = 20,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int | None = None,
    ) -> str:
        """Go on writing: so many words after the text, the likeliest, or drawn."""
        sampling = SamplingParams(max_words, temperature, top_k, seed=seed)
        before, tokenizer = self._unfinished(text), self.model.tokenizer
        pieces = generate(self, tokenizer, before, sampling, spaced=True)
        return "".join(piece.text for piece in pieces)

    @property
    def version(self) -> object:
        """Equal to the one before as long as nothing was read here."""
        return self.online, len(self.memory)

    # Care.

    def forget(
        self,
        document: str | None = None,
        *,
        before: datetime | None = None,
        matching: str | None = None,
        last: int | None = None,
    ) -> int:
        """Be as if documents had never been read, in every file; how many words are gone.

        Always whole documents: one by name, those of which all was read before a time, or those
        with a line that matches.
        """
        where = self.engine, self.model.tokenizer
        names = chosen_documents(
            *where, document=document, before=before, matching=matching, last=last
        )
        gone = self.memory.forget(names, parts=document is not None)
        if not gone and document is not None:
            raise SettingError(
                f"{self.folder} has no document named {document!r}; give a name as it was read"
            )
        return gone

    def check(self) -> list[Finding]:
        """Every checksum on every shard again; what is wrong, and what to do."""
        return [Finding(*each) for part in self._every("check") for each in part]

    def compact(self) -> list[tuple[int, int]]:
        """Write journal and snapshot of every shard anew; bytes before and after, by shard."""
        return [(before, after) for before, after in self._every("compact")]

    def export(self, path: str | Path) -> int:
        """Write every word with its document, line and time to a Parquet file; how many."""
        return export_shards(self.engine, path)

    def _every(self, method: str) -> list[Any]:
        return [self.memory.answer(shard, method) for shard in range(self.engine.count)]

    def stats(self) -> dict[str, Any]:
        """Entries, words, documents and bytes, in all and by shard."""
        shards = self.memory.stats()
        documents = {name for shard in shards for name in shard["documents"]}
        parts = ("entries", "words", "bytes", "bytes_in_memory", "process", "folder", "events")
        return {
            "entries": sum(shard["entries"] for shard in shards),
            "words": max(shard["words"] for shard in shards),
            "documents": len(documents),
            "bytes": sum(shard["bytes"] for shard in shards),
            "shards": [{name: shard[name] for name in parts} for shard in shards],
        }

    def close(self) -> None:
        """Let go; the shards stay, and what waits for them."""
        self.engine.close()
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def __enter__(self) -> "ShardedMemory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
