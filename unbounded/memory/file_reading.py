"""Reading files again and again: what has not changed is skipped, what has is replaced."""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, final

from unbounded.corpus import Reader, Sentence, Splitter, read_sentences
from unbounded.corpus.formats import JSON_LINES, TABLES, ending
from unbounded.corpus.sources import STDIN, Source, find_sources, unreadable
from unbounded.errors import CorpusError, SettingError
from unbounded.evaluation.metrics import Tally, surprise
from unbounded.memory.forgetting import Choice, is_part_of
from unbounded.memory.local import LocalBackend
from unbounded.memory.log_contents import Placed, documents, words_of
from unbounded.model import Reading
from unbounded.store.catalog import FileNote

if TYPE_CHECKING:
    from unbounded.memory.memory import Memory


@dataclass(frozen=True)
class FilesRead:
    """Which files were read, and what became of the others."""

    new: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    """They begin with what was read of them before: only the rest was read."""
    replaced: list[str] = field(default_factory=list)
    """They had changed: what was read of them before is forgotten."""
    unchanged: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """They were read before and are no more; forgotten if that was asked for."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    other_kinds: Counter[str] = field(default_factory=Counter)
    """How many files of folders are of a kind that is not read, by the ending of their names."""
    damaged: dict[str, int] = field(default_factory=dict)
    """Broken bytes that were read as U+FFFD, by file."""
    tally: Tally = field(default_factory=Tally)
    """Words, characters and nats of all that was read."""

    @property
    def words(self) -> int:
        """How many words were read."""
        return self.tally.tokens

    @property
    def perplexity(self) -> float:
        """Of all words that were read; not a number if there were none."""
        return self.tally.perplexity if self.words else float("nan")


@dataclass(frozen=True)
class _Due:
    """A file that is to be read: where, what it was, and how much of it is there already."""

    source: Source
    path: str
    checksum: str
    known: int


def read_files(
    memory: "Memory",
    paths: Sequence[str | Path],
    *,
    again: bool,
    prune: bool,
    column: str | None,
    hear: Callable[[Reading], None],
) -> FilesRead:
    """Read what is new or has changed; the old versions are forgotten together, before.

    With `again` all is read, and nothing forgotten; with `prune` what was read of files that are
    gone is forgotten too. `column` is the field of tables and lines of JSON. `hear` is told each
    block as it is read.
    """
    backend, splitter = memory.backend, memory.model.tokenizer
    backend.check_usable(write=True)
    noted, found = backend.files(), FilesRead()
    known = [document.name for document in documents(backend.store)]
    found.gone.extend(_gone(paths, noted))
    due: dict[str, _Due] = {}
    gone = {name: noted[name] for name in found.gone}
    there = [path for path in paths if os.path.lexists(_real(path)) or not any(_gone([path], gone))]
    for name, path, source in _named(there, noted, column, found.other_kinds):
        try:
            checksum = _checksum(source.path, column)
        except OSError as error:
            found.left_out[name] = str(unreadable(source.path, error))
            continue
        if not again and name in noted and noted[name].checksum == checksum:
            found.unchanged.append(name)
            continue
        old = not again and any(is_part_of(one, name) for one in known)
        try:
            # Known to be text before anything is forgotten for it.
            reader = Reader([source.path], field=column)
            sentences = _sentences(name, source, reader, splitter)
            had = known_words(words_of(backend.store, name) if old else (), sentences)
        except CorpusError as error:
            found.left_out[name] = str(error)
            continue
        due[name] = _Due(source, path, checksum, had or 0)
        kind = found.new if not old else found.replaced if had is None else found.grown
        kind.append(name)
    with backend.verb("read"):
        if to_go := [*found.replaced, *(found.gone if prune else ())]:
            backend.forget(Choice(documents=tuple(to_go)))
        for name, one in due.items():
            reader = Reader([one.source.path], field=column)
            sentences = _sentences(name, one.source, reader, splitter)
            count = one.known
            for block in memory.take(unread(sentences, count)):
                nats, words = float(surprise(block.prob).sum()), block.words
                found.tally.add(nats, len(words), splitter.characters(words))
                count += len(words)
                hear(block)
            found.damaged.update(reader.damaged)
            # If it was written meanwhile, the next time it will have changed.
            if _checksum(one.source.path, column) == one.checksum:
                backend.store.append_file(name, FileNote(one.checksum, count, one.path))
    return found


def changes(
    paths: Sequence[str | Path], column: str | None = None, seconds: float = 1.0
) -> Iterator[None]:
    """Comes each time that files were written, made or removed, and have then been left alone.

    What happens from now on counts, not only from when it is first waited for.
    """
    return _changes(paths, column, seconds, _stamps(paths, column))


def _changes(
    paths: Sequence[str | Path],
    column: str | None,
    seconds: float,
    before: dict[str, tuple[int, int]],
) -> Iterator[None]:
    seen = before
    while True:
        time.sleep(seconds)
        now = _stamps(paths, column)
        if now == seen and now != before:
            before = now
            yield
        seen = now


def _stamps(paths: Sequence[str | Path], column: str | None) -> dict[str, tuple[int, int]]:
    stamps = {}
    for path in paths:
        try:
            for source in find_sources([Path(path).expanduser()], column):
                status = os.stat(source.path)
                stamps[source.path] = status.st_mtime_ns, status.st_size
        except (CorpusError, OSError):
            # Just now it is not there, or a file of it was removed meanwhile.
            continue
    return stamps


def file_named(path: str, noted: Mapping[str, FileNote]) -> str | None:
    """The name under which a file was read, by its path from the root."""
    return next((name for name, note in noted.items() if _where(name, note) == path), None)


def _where(name: str, note: FileNote) -> str:
    """Where a file lay; memories of earlier versions know no more than its name."""
    return note.path or os.path.abspath(name)


def _real(path: str | Path) -> str:
    """A path from the root, as it can be written down."""
    real = os.path.realpath(Path(path).expanduser())
    return os.fsencode(real).decode("utf-8", "replace")


def _gone(paths: Sequence[str | Path], noted: Mapping[str, FileNote]) -> Iterator[str]:
    """Files that were read, lie where one of the paths says, and are not there any more."""
    given = [_real(path) for path in paths]
    for name, note in noted.items():
        where = _where(name, note)
        if not os.path.lexists(where) and any(
            where == one or where.startswith(one.rstrip(os.sep) + os.sep) for one in given
        ):
            yield name


def _named(
    paths: Sequence[str | Path],
    noted: Mapping[str, FileNote],
    column: str | None,
    other_kinds: Counter[str],
) -> Iterator[tuple[str, str, Source]]:
    """Every file that is meant, once: its name as a document, and where it lies.

    A file that was read by another path keeps its name; of two files the second to have a name is
    called by its whole path.
    """
    # An empty path is none, and not the folder that one happens to be in.
    given = [Path(path).expanduser() if path != "" else path for path in paths]
    sources = find_sources(given, column, other_kinds)
    for source in sources:
        if source.path == STDIN or source.size is None:
            raise SettingError(
                f"{source.name} is a pipe, and files and folders are read here; give it to "
                "standard input: 'unbounded read MEMORY -', in Python to follow"
            )
    names = {_where(name, note): name for name, note in noted.items()}
    seen: set[str] = set()
    for source in sources:
        path = _real(source.path)
        if path in seen:
            continue
        seen.add(path)
        taken = source.name in noted and _where(source.name, noted[source.name]) != path
        yield names.get(path, path if taken else source.name), path, source


def _sentences(name: str, source: Source, reader: Reader, splitter: Splitter) -> Iterator[Sentence]:
    """The sentences of a file, under the name that it has as a document."""
    lines = (
        replace(line, document=name + line.document.removeprefix(source.name)) for line in reader
    )
    return read_sentences(lines, splitter, forms=True)


def _checksum(path: str, column: str | None) -> str:
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16))
    # Another column is another text.
    fields = column is not None and (ending(path) in TABLES or ending(path) in JSON_LINES)
    return f"{digest.hexdigest()} {column}" if fields else digest.hexdigest()


# A text that is read once more.


def placed(sentences: Iterable[Sentence]) -> Iterator[Placed]:
    """Each word of sentences, with where it stands."""
    return chain.from_iterable(
        ((one.document, one.line, word) for word in one.words) for one in sentences
    )


def known_words(had: Iterable[Placed], sentences: Iterable[Sentence]) -> int | None:
    """How many words there are already, if a text begins with them; None if it does not.

    The text is gone through to its end. One without words says nothing of what was there.

    >>> text = [Sentence(("it", "rains", "</s>"), "a", 1), Sentence(("why", "</s>"), "a", 2)]
    >>> known_words([("a", 1, "it"), ("a", 1, "rains")], text), known_words([("a", 2, "it")], text)
    (2, None)
    """
    count, same, fresh = 0, True, placed(sentences)
    if (first := next(fresh, None)) is None:
        return 0
    fresh = chain([first], fresh)
    for word in had:
        same = same and next(fresh, None) == word
        count += 1
    for _ in fresh:
        pass
    return count if same else None


def unread(sentences: Iterable[Sentence], known: int) -> Iterator[Sentence]:
    """What follows so many words.

    >>> [one.words for one in unread([Sentence(("it", "rains", "</s>"), "a", 1)], 1)]
    [('rains', '</s>')]
    """
    for one in sentences:
        if known < len(one.words):
            yield one.after(known)
        known = max(known - len(one.words), 0)


@final
class FollowedAgain:
    """A pipe with the name of a document: what comes is compared with what was read under it.

    As long as it is the same it is passed over, and what is more is read. Where it is something
    else, or ends before, all that was read under the name is forgotten, and the pipe is read from
    its beginning; nothing of it had to be held for that.
    """

    def __init__(self, backend: LocalBackend, name: str) -> None:
        self._backend, self._name = backend, name
        self._had: Sequence[Placed] | None = list(words_of(backend.store, name))
        self.known = 0

    def new(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """What of the next sentences is to be read; where all has changed, with those before."""
        for one in sentences:
            if self._had is None:
                yield one
                continue
            mine = list(placed([one]))
            had = self._had[self.known : self.known + len(mine)]
            if had == mine[: len(had)]:
                self.known += len(had)
                if len(had) < len(mine):
                    self._had = None
                    yield one.after(len(had))
            else:
                yield from self._forgotten()
                yield one

    def rest(self) -> Iterator[Sentence]:
        """The pipe has ended: if before what was read under its name, what it had."""
        if self._had is not None and 0 < self.known < len(self._had):
            yield from self._forgotten()

    def _forgotten(self) -> Iterator[Sentence]:
        assert self._had is not None
        again, self._had, self.known = self._had[: self.known], None, 0
        self._backend.forget(Choice(documents=(self._name,)))
        for document, line, word in again:
            yield Sentence((word,), document, line)
