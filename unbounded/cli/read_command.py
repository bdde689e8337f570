"""`unbounded read`; with `--surprise`, a JSON line a sentence, as it is read."""

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from unbounded.cli.main import (
    CORES,
    Device,
    Engine,
    Folder,
    JsonFile,
    Model,
    Texts,
    Threads,
    app,
    opened,
    say_broken,
    size,
    stoppable,
)
from unbounded.console import meter, say, tell
from unbounded.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from unbounded.corpus import Splitter
    from unbounded.memory import Memory
    from unbounded.memory.file_reading import FilesRead
    from unbounded.model import Reading


@app.command()
def read(
    memory_folder: Folder,
    texts: Texts,
    model: Model = None,
    device: Device = "cpu",
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
    prune: Annotated[
        bool, typer.Option("--prune", help="Forget what was read of files that are gone.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and read what is written there, until Ctrl-C.")
    ] = False,
    field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to read of .csv, .tsv (a column) and .jsonl (a field) [default: text, or "
            "the only one].",
        ),
    ] = None,
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
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to call standard input; what was read under that name before is not read "
            "again, and replaced if it has changed [default: standard input, always read].",
        ),
    ] = None,
    engine: Engine = None,
    when_unavailable: Annotated[
        str,
        typer.Option(
            metavar="stop|go-on",
            help="If shards stay unavailable: stop, or go on without them, and tell them what they "
            "missed when they are back.",
        ),
    ] = "stop",
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a shard may be unavailable before that.")
    ] = 60.0,
    queue_bytes: int = size("1G", "Bytes of keys that may wait for them."),
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Read texts into a memory, durably; make it if there is none. `-` follows a pipe.

    A file that has not changed since it was read is passed over; of one that has become longer the
    rest is read; of one that has changed otherwise, what was read before is forgotten first. Text,
    source code and markup are read as they are, of HTML and PDF their text.
    """
    from unbounded.corpus import Reader
    from unbounded.memory import Budget
    from unbounded.memory.file_reading import changes
    from unbounded.store.layout import is_new

    if surprise and json_file == "-":
        raise SettingError("--surprise is for standard output; give --json a file")
    limit = None if budget is None else Budget.parse(budget, policy)
    if (prune or watch) and "-" in texts:
        raise SettingError("--prune and --watch are for files; leave - out")
    if engine is None and when_unavailable != "stop":
        raise SettingError("--when-unavailable is about shards; give --engine, or leave it out")
    named = [text for text in texts if text != "-"]
    if named and is_new(memory_folder):
        # What is not there must not leave a new memory behind.
        _ = Reader(named, field=field).bytes_total
    began, words, nats = time.monotonic(), 0, 0.0
    kept = f"{memory_folder} keeps all that was acknowledged; nothing has to be repaired"
    if "-" not in texts:
        kept += ", and the same command goes on where it was"
    with stoppable(kept), ExitStack() as stack:
        memory = stack.enter_context(
            opened(
                *(memory_folder, model),
                engine=engine,
                device=device,
                write=True,
                create=True,
                threads=threads,
                preset=preset,
                budget=limit,
                when_unavailable=when_unavailable,
                patience=patience,
                queue_bytes=queue_bytes,
            )
        )
        show = None if surprise else stack.enter_context(meter("reading", None))
        sentences = _SurpriseLines(memory.model.tokenizer) if surprise else None

        def hear(reading: "Reading") -> None:
            nonlocal words, nats
            words += len(reading.words)
            nats -= sum(map(math.log, reading.prob.tolist()))
            if sentences is not None:
                sentences.add(reading)
            elif show is not None:
                show(words, f"perplexity {math.exp(nats / words):,.1f}")

        def read_changed() -> "FilesRead":
            found = memory.read_files(named, again=again, prune=prune, field=field, hear=hear)
            for name in named:
                if name in found.left_out:
                    # One that was named, not one of a folder.
                    raise CorpusError(found.left_out[name])
            return found

        changed = changes(named, field) if watch else ()
        files = read_changed() if named else None
        if "-" in texts:
            _follow_pipe(memory, document, hear, again=again)
        if watch and files is not None:
            _say_files(files, field, prune=prune)
            say(f"{memory_folder}: {words:,} words read; watching, Ctrl-C ends it")
            for _ in changed:
                before = words
                _say_files(read_changed(), field, prune=prune)
                say(f"{memory_folder}: {words - before:,} words read; {len(memory):,} entries")
        entries = len(memory)
    seconds = time.monotonic() - began
    perplexity = math.exp(nats / max(words, 1))
    figures: dict[str, Any] = {
        "words": words,
        "entries": entries,
        "perplexity": perplexity if words else None,
        "seconds": seconds,
        "words_per_second": words / seconds,
    }
    if files is not None:
        _say_files(files, field, prune=prune)
        figures |= {
            "files_new": len(files.new),
            "files_grown": len(files.grown),
            "files_replaced": len(files.replaced),
            "files_unchanged": len(files.unchanged),
            "files_gone": files.gone,
            "files_left_out": files.left_out,
            "files_of_other_kinds": dict(files.other_kinds),
        }
    read_now = f"{words:,} words read, perplexity {perplexity:,.1f}" if words else "nothing new"
    line = f"{read_now}; {entries:,} entries"
    tell(json_file, figures, f"{memory_folder}: {line}", err=True)


def _follow_pipe(
    memory: "Memory", document: str | None, hear: "Callable[[Reading], None]", *, again: bool
) -> None:
    """Read standard input; each batch is durable before a word is said of it."""
    from unbounded.corpus import read_sentences
    from unbounded.corpus.reader import batches
    from unbounded.memory.file_reading import FollowedAgain

    name = document or "standard input"
    had = None if document is None or again else FollowedAgain(memory.backend, name)
    with memory.backend.verb("read"):
        for lines in batches(sys.stdin.fileno(), name):
            sentences = read_sentences(lines, memory.model.tokenizer, forms=True)
            for reading in list(memory.take(sentences if had is None else had.new(sentences))):
                hear(reading)
        # What it had is forgotten and read in the same breath: one undo takes back both.
        for reading in list(memory.take(had.rest())) if had is not None else ():
            hear(reading)
    if had is not None and had.known:
        say(f"{had.known:,} words of {name!r} were there already and were passed over")


def _say_files(files: "FilesRead", field: str | None, *, prune: bool) -> None:
    """What became of files, if it was not simply that they were read."""
    from unbounded.corpus.sources import described

    for why in files.left_out.values():
        say(f"left out: {why}")
    if files.other_kinds:
        say(f"left out: {described(files.other_kinds, field)}")
    say_broken(files.damaged)
    for name in files.gone:
        say(f"{name} is gone: " + ("forgotten" if prune else "--prune forgets what was read of it"))
    if files.unchanged:
        say(f"passed over, as unchanged: {len(files.unchanged):,}; --again reads them once more")


@final
class _SurpriseLines:
    """Puts blocks together to sentences again, and prints each with its surprise, as JSON."""

    def __init__(self, splitter: "Splitter") -> None:
        from unbounded.evaluation.metrics import OnlineQuantile

        self._splitter = splitter
        self._words: list[tuple[str, float, str | None]] = []
        """Each with its nats, and as it was written, if that is known."""
        self._where = "", 0
        self._quantile = OnlineQuantile()

    def add(self, reading: "Reading") -> None:
        """Take in a block; whole sentences are printed."""
        from unbounded.corpus import SENTENCE_END

        block = reading.block
        assert block is not None
        places = zip(block.document.tolist(), block.line.tolist(), strict=True)
        forms: Sequence[str | None] = block.forms or [None] * len(block.words)
        for word, prob, place, form in zip(
            reading.words, reading.prob.tolist(), places, forms, strict=True
        ):
            if not self._words:
                self._where = block.documents[place[0]], place[1]
            self._words.append((word, -math.log(prob), form))
            if word == SENTENCE_END:
                self._print()
                self._words = []
        sys.stdout.flush()

    def _print(self) -> None:
        words, nats, forms = zip(*self._words, strict=True)
        mean = sum(nats) / len(nats)
        quantile = self._quantile.add(mean)
        document, line = self._where
        # It may lie in two blocks, of which one does not know.
        written = "" if None in forms else "".join(filter(None, forms)).strip()
        figures = {
            "document": document,
            "line": line,
            "nats": round(mean, 3),
            "quantile": None if quantile is None else round(quantile, 4),
            "word": self._splitter.shown(words[nats.index(max(nats))]),
            "word_nats": round(max(nats), 3),
            "text": written or self._splitter.text(words[:-1]),
        }
        typer.echo(json.dumps(figures, ensure_ascii=False))
