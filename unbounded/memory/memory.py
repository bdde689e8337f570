"""A memory, opened: reads, predicts, scores, goes on writing, forgets; wherever it lies."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, final

from unbounded.corpus import (
    Line,
    Sentence,
    blocks,
    lines_of,
    placed_lines,
    read_sentences,
)
from unbounded.errors import CorpusError, EngineError, SettingError, StoreError, check_type
from unbounded.lm import Pretrained
from unbounded.memory.checkpointing import Show, unheard
from unbounded.memory.file_reading import FilesRead, file_named, known_words, read_files, unread
from unbounded.memory.forgetting import Choice, is_part_of
from unbounded.memory.integrity import Finding
from unbounded.memory.local import LocalBackend
from unbounded.memory.log_contents import Document, documents, rows, words_of, write_table
from unbounded.memory.prediction import Guess, Prediction, Reading, explain, peeked, predict
from unbounded.memory.sampling import Piece, SamplingParams, after, generate
from unbounded.model import OnlineModel
from unbounded.model import Reading as BlockReading


@final
class Memory:
    """A model that stays, and goes on reading: in this process, on disk, or with keys on shards.

    On disk, what `read` has returned from is there tomorrow. Use it in a `with` statement, or
    `close` it.
    """

    def __init__(self, backend: LocalBackend, model: Pretrained) -> None:
        self.backend, self.model = backend, model
        self.events = backend.events
        """What happened that somebody should hear of."""

    @property
    def online(self) -> OnlineModel:
        """The model itself, for asking; reading into it would not be kept."""
        return self.backend.learned.online

    @property
    def version(self) -> object:
        """Equal to the one before as long as nothing was learned or forgotten."""
        return self.online, self.backend.store.records

    def __len__(self) -> int:
        return self.backend.entries

    # Reading.

    def read(
        self,
        text: str,
        document: str | None = None,
        *,
        line: int = 1,
        time: datetime | None = None,
    ) -> Reading:
        """Read a text, a sentence a line, and say how surprising each word was.

        Durable when it returns; nothing is kept if it fails. `document` is what to
        call it, `line` the number of its first line, `time` when it was written, if not now.
        """
        document = UNNAMED if document is None else _text(document, "document")
        lines = lines_of(_text(text, "text"), document, line)
        found = [self._kept(block) for block in self.follow(lines, time=time, whole=True)]
        if not found:
            raise CorpusError(f"there are no words in {document!r}; give a text with words")
        return Reading.joined(found)

    def read_files(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        again: bool = False,
        prune: bool = False,
        field: str | None = None,
        hear: Callable[[BlockReading], None] = lambda reading: None,
    ) -> FilesRead:
        """Read files and folders: skips what has not changed, and replaces what has.

        What could not be read as text is left out, and said; `again` reads all once more; `prune`
        forgets files that are gone; `field` is what is read of tables and lines of JSON; `hear` is
        told each block as it is read. Durable when it returns.
        """
        given = [paths] if isinstance(paths, str | Path) else paths
        check_type(given, "paths", Iterable, needed="a str, a Path, or a list of them")
        given = list(given)
        for path in given:
            check_type(path, "a path", str, Path, needed="a str or a Path")
        return read_files(self, given, again=again, prune=prune, column=field, hear=hear)

    def follow(
        self,
        lines: Iterable[Line | str],
        *,
        time: datetime | None = None,
        whole: bool = False,
        skip: int = 0,
    ) -> Iterator[BlockReading]:
        """Read lines, such as a `Reader` or strings, a block at a time; all durable at the end.

        Only what is taken from the result is read: `for block in memory.follow(lines): …`, or
        `read` for a text at once. If it fails, what was kept is said in `events`; with `whole`
        nothing is. So many words at the beginning are passed over as `skip` says.
        """
        given = placed_lines(lines, UNNAMED)
        sentences = unread(read_sentences(given, self.model.tokenizer, forms=True), skip)
        return self.take(sentences, time=time, whole=whole)

    def known_words(self, lines: Iterable[Line], document: str) -> int | None:
        """How many words of a document are there, if its lines begin with them; otherwise None."""
        sentences = read_sentences(lines, self.model.tokenizer)
        return known_words(words_of(self.backend.store, document), sentences)

    def take(
        self, sentences: Iterable[Sentence], *, time: datetime | None = None, whole: bool = False
    ) -> Iterator[BlockReading]:
        """`follow` for lines that were split into words before; read as it is taken."""
        return self.backend.read(blocks(sentences, self.backend.block), time, whole=whole)

    def _kept(self, block: BlockReading) -> Reading:
        """What is left of a block once its states are let go."""
        characters = self.model.tokenizer.characters(block.words)
        return Reading(block.words, block.prob, block.experts, block.table, characters)

    # Asking, which teaches nothing.

    def predict(
        self, text: str = "", n: int = 10, prefix: str = "", *, sources: int = 3
    ) -> Prediction:
        """The likeliest next words after a text, of those with a prefix; who says so, and why."""
        return self.predict_after(self._after(text), n, prefix, sources=sources)

    def predict_after(
        self, model: OnlineModel, n: int = 10, prefix: str = "", *, sources: int = 3
    ) -> Prediction:
        """`predict` for a model that stands behind a text, such as one that `online` gave."""
        self.backend.check_usable()
        check_type(n, "n", int)
        check_type(prefix, "prefix", str)
        check_type(sources, "sources", int)
        if n < 1:
            raise SettingError(f"{n} words were asked for; ask for at least 1")
        return predict(model, self.backend.store, n, prefix, sources, self.model.tokenizer)

    def explain(self, model: OnlineModel, word: str, *, sources: int = 3) -> Guess:
        """How likely one word is behind a text, by whose word, and from which passages."""
        self.backend.check_usable()
        return explain(model, self.backend.store, word, sources, self.model.tokenizer)

    def score(self, text: str) -> Reading:
        """What each word's probability would be, sentence by sentence.

        The words of the text are not learned from, but who was right about them is.
        """
        found = list(self.scoring(lines_of(_text(text, "text"), "text", 1)))
        if not found:
            raise CorpusError("there are no words to score; give a text with words")
        return Reading.joined(found)

    def scoring(self, lines: Iterable[Line | str]) -> Iterator[Reading]:
        """`score` for lines, such as a `Reader` or strings, a block at a time, as it is taken."""
        self.backend.check_usable()
        given = placed_lines(lines, "text")
        found = blocks(read_sentences(given, self.model.tokenizer), SCORED)
        for reading in peeked(self.online, (block.words for block in found)):
            yield self._kept(reading)

    def complete(
        self,
        text: str = "",
        max_words: int = 20,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int | None = None,
        *,
        top_p: float = 1.0,
    ) -> str:
        """Go on writing: so many words after the text, the likeliest, or drawn."""
        check_type(temperature, "temperature", float)
        sampling = SamplingParams(max_words, float(temperature), top_k, top_p, seed)
        return "".join(piece.text for piece in self.generate(text, sampling, spaced=True))

    def generate(
        self, text: str, sampling: SamplingParams, *, spaced: bool = False
    ) -> Iterator[Piece]:
        """`complete` piece by piece, as each word is taken."""
        self.backend.check_usable()
        tokenizer = self.model.tokenizer
        return generate(self, tokenizer, self._unfinished(text), sampling, spaced=spaced)

    def _after(self, text: str) -> OnlineModel:
        """The model behind a text that goes on."""
        self.backend.check_usable()
        return after(self.online, self._unfinished(text))

    def _unfinished(self, text: str) -> list[str]:
        """The words of a text that goes on, so that its last sentence does not end."""
        lines = lines_of(_text(text, "text"), "text", 1)
        sentences = read_sentences(lines, self.model.tokenizer)
        return [word for sentence in sentences for word in sentence.words][:-1]

    # What is there, and forgetting.

    def documents(self) -> list[Document]:
        """What was read and is left of it."""
        return documents(self.backend.store)

    def forget(
        self,
        document: str | Path | None = None,
        *,
        before: datetime | None = None,
        matching: str | None = None,
        last: int | None = None,
        dry_run: bool = False,
        show: Show = unheard,
    ) -> int:
        """Be as if some words had never been read; how many. Durable when it returns.

        What was read after the first of them is read again, and `compact` takes them out of the
        files too. A `document` is a name as it was read, or any path of a file that was. A
        `dry_run` only counts.
        """
        check_type(before, "before", datetime, NoneType)
        check_type(matching, "matching", str, NoneType)
        check_type(last, "last", int, NoneType)
        documents = None if document is None else (self._named(document),)
        choice = Choice(documents, before, matching, last)
        return self.backend.forget(choice, dry_run=dry_run, show=show)

    def _named(self, document: str | Path) -> str:
        """The name of a document, by that or by a path of its file."""
        if isinstance(document, Path):
            path = os.path.realpath(document.expanduser())
        else:
            name = _text(document, "document")
            if any(is_part_of(one.name, name) for one in self.documents()):
                return name
            # Nothing is looked for on disk: a name may come from anywhere.
            path = os.path.abspath(os.path.expanduser(name))
        return file_named(path, self.backend.files()) or str(document)

    def undo(self, *, show: Show = unheard) -> tuple[str, int]:
        """Take back the last read or forget: which it was, and how many words more there are.

        Until the next `compact`; called again, it takes back the one before. Durable when it
        returns. What was learned is read again, as when forgetting.
        """
        return self.backend.undo(show)

    def compact(self) -> tuple[int, int]:
        """Write everything anew without what was forgotten; bytes on disk before and after."""
        return self.backend.compact()

    def view(self) -> "Memory":
        """One for asking that stays as this is now, while this forgets and compacts; close it."""
        return Memory(self.backend.view(), self.model)

    def refresh(self, show: Show = unheard) -> int | None:
        """Follow the writer: how many words came; None if what was there has changed."""
        return self.backend.refresh(show)

    def stats(self) -> dict[str, Any]:
        """Entries, words, documents and bytes, in all and by part or shard."""
        return self.backend.stats()

    def check(self, *, deep: bool = False, show: Show = unheard) -> list[Finding]:
        """What is wrong, and what to do; nothing if all is well.

        With `deep` all is read again, and what was learned must come out the same.
        """
        return self.backend.check(deep=deep, show=show)

    def export(self, path: str | Path) -> int:
        """Write every word that is left to a .parquet, .csv or .jsonl file; how many."""
        check_type(path, "path", str, Path, needed="a str or a Path")
        return write_table(rows(self.backend.store), Path(path).expanduser())

    def close(self) -> None:
        """Let go; what was read is kept on disk."""
        self.backend.close()

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            # What went wrong is what must be heard of.
            with suppress(StoreError, EngineError, OSError):
                self.close()


SCORED = 512
"""Words that are scored at once."""

UNNAMED = "text"
"""What texts are called that nobody gave a name: all of them together are one document."""


def _text(value: str, name: str) -> str:
    check_type(value, name, str)
    return value
