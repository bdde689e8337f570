"""Files to lines: streamed in order, in constant memory, whatever the files hold."""

import codecs
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

from unbounded.corpus.formats import (
    PDF,
    PROBED,
    Numbered,
    ending,
    longest_line,
    pdf_text,
    refuse_binary,
    text_of,
    why_not_text,
)
from unbounded.corpus.sources import STDIN, Source, find_sources, read_chunks
from unbounded.errors import CorpusError, SettingError, check_type

_MARK = "\ufffd"
_SPACES = " \t\r\x0b\x0c\x85\xa0\u2028\u2029\u3000"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence of a text and where it stands; `number` counts the lines of its file from 1."""

    document: str
    number: int
    text: str


Text = str | Path | Iterable[str | Path] | Iterable[Line]
"""A text, as functions of the package take it: a path, several, a `Reader`, or lines."""


@final
class Reader:
    """The lines of files, folders and `-`, in order; blank lines are left out.

    HTML gives its text, PDF the text of its pages, a table or lines of JSON their `field`; all else
    is plain text. How many files of folders are of a kind that is not read is in `left_out`.
    Each path is read as often as it is given, and the counts are those of the latest reading.
    A file or a blank line ends a document. Only a line feed ends a line, with or without a carriage
    return. Broken UTF-8 and stray NUL bytes become U+FFFD and are counted in `replaced`, by file in
    `damaged`; lines too long to hold are cut at white space and counted in `cut`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rain.txt"
    >>> _ = path.write_bytes(b"It rains.\\r\\nIt pours.\\n\\nThe old man \\xff snores.\\n")
    >>> reader = Reader([path])
    >>> for line in reader:
    ...     print(line.document.removeprefix(str(path.parent)), line.number, line.text)
    /rain.txt 1 It rains.
    /rain.txt 2 It pours.
    /rain.txt#2 4 The old man � snores.
    >>> reader.replaced, reader.bytes_read == reader.bytes_total
    (1, True)
    """

    def __init__(
        self, paths: str | Path | Sequence[str | Path], *, field: str | None = None
    ) -> None:
        self._paths = [paths] if isinstance(paths, str | Path) else list(paths)
        for path in self._paths:
            if not isinstance(path, str | Path):
                raise SettingError(
                    f"{path!r} is no path but {type(path).__name__}; give str or Path, or a list"
                )
        self.field = field
        self.files = 0
        self.left_out: Counter[str] = Counter()
        self.bytes_read = 0
        self.cut = 0
        self.damaged: dict[str, int] = {}

    @property
    def replaced(self) -> int:
        """How many U+FFFD were put in the place of broken bytes."""
        return sum(self.damaged.values())

    @cached_property
    def bytes_total(self) -> int | None:
        """How many bytes, as they lie on disk, there are to read; None if a pipe is among them."""
        total = 0
        for source in find_sources(self._paths, self.field):
            if source.size is None:
                return None
            total += source.size
        return total

    def __iter__(self) -> Iterator[Line]:
        # All paths are looked at before the first is read: a typing error in the last one should
        # not show after an hour.
        self.left_out = Counter()
        sources = find_sources(self._paths, self.field, self.left_out)
        self.files = self.bytes_read = self.cut = 0
        self.damaged = {}
        empty = True
        for source in sources:
            self.files += 1
            for line in self._lines(source):
                empty = False
                yield line
        if empty:
            names = ", ".join(source.name for source in sources[:3]) or "no path at all"
            raise CorpusError(
                f"there is no text in {names}{' …' if len(sources) > 3 else ''}; at least one line "
                "with words is needed; give other files"
            )

    def _lines(self, source: Source) -> Iterator[Line]:
        document, documents, between = source.name, 1, False
        started = False
        for number, text in self._text_of(source):
            if not text or text.isspace():
                between = started
                continue
            if between:
                documents += 1
                document, between = f"{source.name}#{documents}", False
            started = True
            yield Line(document, number, text)

    def _text_of(self, source: Source) -> Numbered:
        """Numbered lines of the text in a file, whatever its format."""
        if source.path != STDIN and ending(source.path) == PDF:
            return pdf_text(source.name, read_chunks(source, self._count))
        lines = self._numbered(self._texts(source), longest_line(source.name))
        return text_of(source.name, lines, self.field)

    def _numbered(self, texts: Iterator[str], longest: int) -> Iterator[tuple[int, str]]:
        """Put pieces of text together to lines; a line too long to hold comes in pieces."""
        number = 1
        parts: list[str] = []
        length, cut = 0, False
        for text in texts:
            first, *rest = text.split("\n")
            parts.append(first)
            length += len(first)
            # Only here can a line be too long: those that lie within one piece of text are shorter.
            while length > longest:
                # Without blanks at its start, there is something before every place to cut.
                line = "".join(parts).lstrip()
                if len(line) > longest:
                    # Within a word only if there is no space.
                    space = max(line.rfind(space, 1, longest + 1) for space in _SPACES)
                    at = space if space > 0 else longest
                    yield number, line[:at]
                    line, cut = line[at:], True
                    self.cut += 1
                parts, length = [line], len(line)
            if not rest:
                continue
            line = "".join(parts).removesuffix("\r")
            # What is left of a line that was cut may be blank without the line being so.
            if line.strip() or not cut:
                yield number, line
            for line in rest[:-1]:
                number += 1
                yield number, line.removesuffix("\r")
            number += 1
            parts, length, cut = [rest[-1]], len(rest[-1]), False
        if parts:
            yield number, "".join(parts).removesuffix("\r")

    def _texts(self, source: Source) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        seen = 0
        held = b""
        for chunk in read_chunks(source, self._count):
            if not seen:
                _refuse_wide(source, chunk)
                chunk = chunk.removeprefix(codecs.BOM_UTF8)
            text = decoder.decode(chunk)
            still_held = decoder.getstate()[0]
            marks = text.count(_MARK)
            if marks:
                decoded = (held + chunk)[: len(held) + len(chunk) - len(still_held)]
                marks -= decoded.count(_MARK.encode())
            if seen < PROBED:
                refuse_binary(source.name, text, marks)
            self._replace(source, marks + text.count("\0"))
            yield text.replace("\0", _MARK)
            seen += len(chunk)
            held = still_held
        if text := decoder.decode(b"", final=True):
            self._replace(source, len(text))
            yield text

    def _count(self, size: int) -> None:
        self.bytes_read += size

    def _replace(self, source: Source, marks: int) -> None:
        if marks:
            self.damaged[source.name] = self.damaged.get(source.name, 0) + marks


def as_lines(text: Text) -> Iterable[Line]:
    """The lines of a text, however it is given: to be gone through as often as one likes."""
    if isinstance(text, str | Path):
        return Reader([text])
    if not isinstance(text, Iterable):
        raise SettingError(
            f"{text!r} is no text but {type(text).__name__}; give a path, a list of paths, a "
            "Reader, or lines"
        )
    # A list tells what is in it, and what can be gone through only once becomes one.
    given = list(text) if isinstance(text, list | tuple | Iterator) else None
    if given is None:
        return text  # type: ignore[return-value]  # such as a `Reader`
    if given and all(isinstance(line, Line) for line in given):
        return given
    return Reader(given)


def placed_lines(lines: Iterable[Line | str], document: str) -> Iterator[Line]:
    """Lines that may be mere strings, each with where it stands."""
    if isinstance(lines, str):
        raise SettingError("a str where lines are needed; give a list of them, or use read")
    check_type(lines, "lines", Iterable, needed="a list of str, or a Reader")
    for number, line in enumerate(lines, 1):
        check_type(line, "a line", str, Line, needed="a str")
        yield Line(document, number, line) if isinstance(line, str) else line


def lines_of(text: str, document: str, first: int) -> list[Line]:
    """The lines of a text under a name; refuses what is no text."""
    if (found := why_not_text(text)) is not None:
        raise CorpusError(f"{document!r} is not text (it has {found}); give text")
    return [Line(document, number, line) for number, line in enumerate(text.split("\n"), first)]


def _refuse_wide(source: Source, start: bytes) -> None:
    if start.startswith(_WIDE_MARKS):
        raise CorpusError(
            f"{source.name} is UTF-16 or UTF-32; UTF-8 is needed; convert it with: "
            "iconv -f UTF-16 -t UTF-8"
        )


AT_ONCE = 1 << 16


def batches(file: int, document: str) -> Iterator[list[Line]]:
    """The lines that have come since the last batch, at least one; ends with the pipe.

    Broken UTF-8 is read as U+FFFD. A last line without an end is a line.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest, number = "", 1
    while True:
        data = os.read(file, AT_ONCE)
        text = decoder.decode(data, final=not data)
        refuse_binary(document, text)
        *whole, rest = (rest + text).split("\n")
        if not data and rest:
            whole.append(rest)
        if whole:
            yield [Line(document, number + i, text) for i, text in enumerate(whole)]
            number += len(whole)
        if not data:
            return
