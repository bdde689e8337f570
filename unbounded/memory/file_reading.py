"""Reading files again and again: what has not changed is skipped, what has is replaced."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unbounded.corpus import Line, Reader, Splitter
from unbounded.corpus.sources import STDIN, find_sources
from unbounded.errors import CorpusError, SettingError
from unbounded.evaluation.metrics import Tally, surprise
from unbounded.memory.backend import Backend, unheard
from unbounded.memory.forgetting import Choice, is_part_of
from unbounded.model import Reading

_CHUNK = 1 << 20


@dataclass(frozen=True)
class FilesRead:
    """Which files were read, and what became of the others."""

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """They had changed: what was read of them before is forgotten."""
    unchanged: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
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


def read_files(
    backend: Backend,
    follow: Callable[[Iterable[Line]], Iterator[Reading]],
    splitter: Splitter,
    paths: Sequence[str | Path],
    *,
    again: bool = False,
    hear: Callable[[Reading], None] = lambda reading: None,
) -> FilesRead:
    """Read what is new or has changed; the old versions are forgotten together, before.

    With `again` all is read, and nothing forgotten. `hear` is told each block as it is read.
    """
    backend.check_usable(write=True)
    noted, found = backend.files(), FilesRead()
    known = [document.name for document in backend.documents()]
    due: dict[str, tuple[str, str]] = {}
    for name, path in _sources(paths).items():
        try:
            checksum = _checksum(path)
        except OSError as error:
            found.left_out[name] = error.strerror or str(error)
            continue
        if not again and noted.get(name) == checksum:
            found.unchanged.append(name)
        elif (why := _unreadable(path)) is not None:
            # Known before anything is forgotten for it.
            found.left_out[name] = why
        else:
            due[name] = path, checksum
            old = not again and any(is_part_of(one, name) for one in known)
            (found.replaced if old else found.new).append(name)
    if found.replaced:
        choice = Choice(documents=tuple(found.replaced))
        backend.forget(choice, dry_run=False, show=unheard)
    for name, (path, checksum) in due.items():
        reader, before = Reader([path]), found.words
        for block in follow(reader):
            nats, words = float(surprise(block.prob).sum()), block.words
            found.tally.add(nats, len(words), splitter.characters(words))
            hear(block)
        found.damaged.update(reader.damaged)
        # If it was written meanwhile, the next time it will have changed.
        if _checksum(path) == checksum:
            backend.note_file(name, checksum, found.words - before)
    return found


def _sources(paths: Sequence[str | Path]) -> dict[str, str]:
    """Every file that is named, once: its name as a document, and its path."""
    sources = find_sources([Path(path).expanduser() for path in paths])
    if any(source.path == STDIN or source.size is None for source in sources):
        raise SettingError("read_files reads files and folders, not pipes; use follow for one")
    return {source.name: source.path for source in sources}


def _checksum(path: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _unreadable(path: str) -> str | None:
    """Why a file cannot be read as text, if it cannot."""
    try:
        for _ in Reader([path]):
            pass
    except CorpusError as error:
        return str(error)
    return None
