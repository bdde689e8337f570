"""`unbounded read`."""

import json
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import (
    CORES,
    Engine,
    JsonFile,
    Texts,
    Threads,
    app,
    check_targets,
    say_broken,
    say_damage,
    size,
    stoppable,
)
from unbounded.cli.memory_options import Folder, Model, opened
from unbounded.console import meter, say, tell
from unbounded.errors import SettingError

if TYPE_CHECKING:
    from unbounded.corpus import Line, Sentence, Splitter
    from unbounded.memory import Memory
    from unbounded.memory.file_reading import FilesRead
    from unbounded.model import Reading


@app.command()
def read(
    memory_folder: Folder,
    texts: Texts,
    model: Model = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a new memory: what it is made of, as the rows of 'evaluate' are called, or "
            "paper [default: full].",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Read files once more that have not changed.")
    ] = False,
    surprise: Annotated[
        bool,
        typer.Option(
            "--surprise",
            help="Print a JSON line a sentence, as it is read: nats a word, the word that "
            "surprised most, and how unusual that is so far.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="For a new memory: what it may have at most, 1M entries or 500MB on disk.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="What goes first then: age, or surprise (the least surprising).")
    ] = "age",
    document: Annotated[
        str, typer.Option(metavar="NAME", help="What to call standard input.")
    ] = "standard input",
    engine: Engine = None,
    when_away: Annotated[
        str,
        typer.Option(
            metavar="stop|queue",
            help="If shards stay away: stop, or go on without them, and let what they miss wait "
            "on this machine's disk until they are back.",
        ),
    ] = "stop",
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a shard may be away before that.")
    ] = 60.0,
    queue_bytes: int = size("1G", "Bytes that may wait on disk."),
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Read texts into a memory, durably; make it if there is none. `-` follows a pipe.

    A file that has not changed since it was read is passed over; of one that has, what was read
    before is forgotten first.
    """
    from unbounded.corpus import Reader
    from unbounded.memory import Budget

    check_targets(json_file)
    limit = None if budget is None else Budget.parse(budget, policy)
    if "-" not in texts:
        # What is not there must not leave a new memory behind.
        _ = Reader(texts).bytes_total
    began, words, nats = time.monotonic(), 0, 0.0
    if engine is not None and budget is not None:
        raise SettingError("a memory on shards has no budget; leave --budget out")
    if engine is None and when_away != "stop":
        raise SettingError("only shards can be away; give --engine, or leave --when-away out")
    kept = f"{memory_folder} keeps all that was acknowledged; nothing has to be repaired"
    with stoppable(kept), ExitStack() as stack:
        memory = stack.enter_context(
            opened(
                *(memory_folder, model),
                engine=engine,
                write=True,
                create=True,
                threads=threads,
                preset=preset,
                budget=limit,
                when_unavailable=when_away,
                patience=patience,
                queue_bytes=queue_bytes,
            )
        )
        show = None if surprise else stack.enter_context(meter("reading", None))
        sentences = _SurpriseLines(memory.model.tokenizer) if surprise else None
        if engine is not None and texts == ["-"]:
            # Documents are known by name and position, and each pipe is another one.
            document = f"{document} {datetime.now(UTC).isoformat(timespec='seconds')}"

        def hear(reading: "Reading") -> None:
            nonlocal words, nats
            words += len(reading.words)
            nats -= sum(map(math.log, reading.prob.tolist()))
            if sentences is not None:
                sentences.add(reading)
            elif show is not None:
                show(words, f"perplexity {math.exp(nats / words):,.1f}")

        files = _read(
            memory, texts, document, sentences, again=again, sharded=engine is not None, hear=hear
        )
        entries = len(memory)
        if (known := memory.backend.known) and json_file != "-":
            say(f"{known:,} words were there already and were passed over")
        waiting = memory.backend.waiting
    seconds = time.monotonic() - began
    perplexity = math.exp(nats / max(words, 1))
    if waiting:
        say(f"{waiting:,} words wait on disk for shards that are away; 'unbounded memory drain'")
    if files is not None and files.unchanged and json_file != "-":
        say(
            f"{len(files.unchanged):,} files have not changed and were passed over; --again reads "
            "them once more"
        )
    figures: dict[str, Any] = {
        "words": words,
        "entries": entries,
        "waiting": waiting,
        "perplexity": perplexity if words else None,
        "seconds": seconds,
        "words_per_second": words / seconds,
    }
    if files is not None:
        figures |= {
            "files_new": len(files.new),
            "files_replaced": len(files.replaced),
            "files_unchanged": len(files.unchanged),
            "files_left_out": files.left_out,
        }
    read_now = f"{words:,} words read, perplexity {perplexity:,.1f}" if words else "nothing new"
    line = f"{read_now}; {entries:,} entries"
    tell(json_file, figures, f"{memory_folder}: {line}", err=True)


def _read(
    memory: "Memory",
    texts: list[str],
    document: str,
    sentences: "_SurpriseLines | None",
    *,
    again: bool,
    sharded: bool,
    hear: "Callable[[Reading], None]",
) -> "FilesRead | None":
    """Read a pipe as it comes, or files; of those, what became of each."""
    from unbounded.corpus import Reader, blocks, read_sentences
    from unbounded.errors import CorpusError
    from unbounded.memory.file_reading import read_files
    from unbounded.memory.pipe import batches

    def read(lines: "Iterable[Line]") -> "Iterator[Reading]":
        if sentences is None:
            return memory.follow(lines)
        come = sentences.noted(read_sentences(lines, memory.model.tokenizer))
        return memory.take(blocks(come, memory.backend.block))

    if texts == ["-"]:
        # Each batch is durable before a word is said of it.
        for lines in batches(sys.stdin.fileno(), document):
            for reading in list(read(lines)):
                hear(reading)
        return None
    if "-" in texts or sharded:
        # Shards pass over what they have of a document, and may be unavailable.
        reader = Reader(texts)
        for reading in read(reader):
            hear(reading)
        say_damage(reader)
        return None
    found = read_files(memory.backend, read, memory.model.tokenizer, texts, again=again, hear=hear)
    for name, why in found.left_out.items():
        if name in texts:
            raise CorpusError(why)
        say(f"left out: {why}")
    say_broken(found.damaged)
    return found


class _SurpriseLines:
    """Puts blocks together to sentences again, and prints each with its surprise, as JSON."""

    def __init__(self, splitter: "Splitter") -> None:
        from unbounded.evaluation.unusual import OnlineQuantile

        self._splitter = splitter
        self._words: list[str] = []
        self._nats: list[float] = []
        self._come: deque[Sentence] = deque()
        self._quantile = OnlineQuantile()

    def noted(self, sentences: "Iterable[Sentence]") -> "Iterator[Sentence]":
        """The same sentences, of which it is noted where they stand."""
        for sentence in sentences:
            self._come.append(sentence)
            yield sentence

    def add(self, reading: "Reading") -> None:
        from unbounded.corpus import SENTENCE_END

        for word, prob in zip(reading.words, reading.prob.tolist(), strict=True):
            self._words.append(word)
            self._nats.append(-math.log(prob))
            if word == SENTENCE_END:
                self._print()
                self._words, self._nats = [], []
        sys.stdout.flush()

    def _print(self) -> None:
        # What was there already is passed over, and not said.
        while self._come and self._come[0].words != tuple(self._words):
            self._come.popleft()
        source = self._come.popleft() if self._come else None
        mean = sum(self._nats) / len(self._nats)
        most = max(range(len(self._nats)), key=self._nats.__getitem__)
        quantile = self._quantile.add(mean)
        figures = {
            "document": None if source is None else source.document,
            "line": None if source is None else source.line,
            "nats": round(mean, 3),
            "quantile": None if quantile is None else round(quantile, 4),
            "word": self._splitter.shown(self._words[most]),
            "word_nats": round(self._nats[most], 3),
            "text": self._splitter.text(self._words[:-1]),
        }
        typer.echo(json.dumps(figures, ensure_ascii=False))
