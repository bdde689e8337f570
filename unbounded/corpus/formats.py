"""Which files hold text, and how it is taken out of them: by the ending of their names."""

import csv
import io
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from unbounded.errors import CorpusError, needing

COMPRESSED = frozenset([".gz", ".bz2", ".xz", ".zst"])

TEXT = frozenset(["", ".txt", ".text", ".log"])
_MARKUP = ".md .markdown .rst .org .tex .bib .adoc .textile .srt .vtt"
_CODE = """
    .py .pyi .c .h .cc .hh .cpp .hpp .cxx .cu .rs .go .java .kt .scala .swift .m .cs .fs .vb .dart
    .js .mjs .ts .jsx .tsx .css .scss .rb .php .pl .pm .lua .r .jl .sh .bash .zsh .fish .ps1 .sql
    .hs .ml .mli .ex .exs .erl .clj .lisp .scm .el .vim .zig .nim .f .f90 .s .asm .proto .cmake .mk
    .toml .yaml .yml .ini .cfg .conf
"""
_INLINE = """
    a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small
    span strike strong sub sup time tt u var wbr
"""
PLAIN = TEXT | frozenset(f"{_MARKUP} {_CODE}".split())
"""What is read as it is."""
HTML = frozenset([".html", ".htm", ".xhtml"])
JSON_LINES = frozenset([".jsonl", ".ndjson"])
TABLES = {".csv": ",", ".tsv": "\t"}
PDF = ".pdf"

FIELD = "text"
"""The field that is read if none is named."""

LONGEST_RECORD = 1 << 24
"""Characters of a line of JSON, or of a table's cell."""

LONGEST = 1 << 20
"""A longer line of text is given in pieces of at most this many characters, under its number."""

Numbered = Iterator[tuple[int, str]]
"""Lines with their numbers."""


def ending(name: str) -> str:
    """What a file's name ends in, in small letters; what it is packed with left out.

    >>> ending("notes/A.HTML.gz"), ending("Makefile"), ending("x.tar.gz")
    ('.html', '', '.tar')
    """
    path = Path(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def longest_line(name: str) -> int:
    """Characters of a line that are held at once."""
    return LONGEST_RECORD if ending(name) in JSON_LINES else LONGEST


def why_left_out(name: str, field: str | None) -> str | None:
    """Why a file of a folder is not read, and what would help; nothing if it is."""
    kind = ending(name)
    if kind in PLAIN | HTML:
        return None
    if kind in JSON_LINES or kind in TABLES:
        return None if field is not None else "say which field or column: --field NAME"
    if kind == PDF:
        return None if find_spec("pypdf") else "pip install 'unbounded[pdf]'"
    return "to read one as plain text, name it"


def text_of(name: str, lines: Numbered, field: str | None) -> Numbered:
    """The lines of the text in a file, by what its name ends in; numbers are those of the file."""
    kind = ending(name)
    if kind in HTML:
        return _html(lines)
    if kind in JSON_LINES:
        return _json_lines(name, lines, field)
    if kind in TABLES:
        return _table(name, lines, field, TABLES[kind])
    return lines


def pdf_text(name: str, chunks: Iterable[bytes]) -> Numbered:
    """The lines of a PDF file, each with the number of its page."""
    with needing(f"pypdf, which reads {name},", "pdf"):
        import pypdf
    # What it warns of is no line of ours; what it cannot read it raises.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        for number, page in enumerate(pypdf.PdfReader(io.BytesIO(b"".join(chunks))).pages, 1):
            for line in page.extract_text().split("\n"):
                if line.strip():
                    yield number, line
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        raise CorpusError(
            f"{name} is a PDF file that cannot be read ({why}); open it elsewhere and save it as "
            "text, or leave it out"
        ) from None


@final
class _Paragraphs(HTMLParser):
    """What a browser would show, a paragraph a line."""

    UNSEEN = frozenset(["script", "style", "template", "noscript", "svg"])
    INLINE = frozenset(_INLINE.split())

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._parts: list[str] = []
        self._line, self._unseen = 1, 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._unseen += tag in self.UNSEEN
        if tag not in self.INLINE:
            self.end_paragraph()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.UNSEEN:
            self._unseen = max(self._unseen - 1, 0)
        if tag not in self.INLINE:
            self.end_paragraph()

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            if not self._parts and data.strip():
                self._line = self.getpos()[0] + data[: -len(data.lstrip())].count("\n")
            if self._parts or data.strip():
                self._parts.append(data)

    def end_paragraph(self) -> None:
        """What was heard since the last is one."""
        if text := " ".join("".join(self._parts).split()):
            self.found.append((self._line, text))
        self._parts = []


def _html(lines: Numbered) -> Numbered:
    parser = _Paragraphs()
    for _, line in lines:
        parser.feed(line + "\n")
        yield from parser.found
        parser.found = []
    parser.close()
    parser.end_paragraph()
    yield from parser.found


def _json_lines(name: str, lines: Numbered, field: str | None) -> Numbered:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise CorpusError(
                f"line {number} of {name} is not JSON; each line must be a JSON value of at most "
                f"{LONGEST_RECORD:,} characters; mend it, or give the text another way"
            ) from None
        if isinstance(value, dict):
            value = value[_column(name, list(value), field)]
        if not isinstance(value, str):
            raise CorpusError(
                f"line {number} of {name} has no text but {type(value).__name__}; give a field "
                "that is text: --field NAME"
            )
        yield from ((number, part) for part in value.split("\n") if part.strip())


def _table(name: str, lines: Numbered, field: str | None, delimiter: str) -> Numbered:
    csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader((f"{line}\n" for _, line in lines), delimiter=delimiter)
    try:
        header = next(rows, [])
        at = header.index(_column(name, header, field)) if header else 0
        before = rows.line_num
        for row in rows:
            if at < len(row):
                yield from ((before + 1, part) for part in row[at].split("\n") if part.strip())
            before = rows.line_num
    except csv.Error as error:
        raise CorpusError(
            f"{name} is no table as its name says ({error}, line {rows.line_num}); mend it, or "
            "give the text another way"
        ) from None


def _column(name: str, there: Sequence[str], field: str | None) -> str:
    """The field to read: the one that was asked for, `text`, or the only one."""
    wanted = field or (there[0] if len(there) == 1 else FIELD)
    if wanted not in there:
        shown = ", ".join(there[:20]) + (" …" if len(there) > 20 else "")
        raise CorpusError(
            f"{name} has no field {wanted!r} but {shown or 'none'}; give one of them: --field NAME"
        )
    return wanted


PROBED = 1 << 16
"""Characters at the start of a text that are looked at."""

_MARK = "\ufffd"
_MAGIC = {
    re.compile("\ufffd{3,}.{0,12}(JFIF|Exif)", re.DOTALL): "a JPEG image",
    re.compile("\ufffdPNG"): "a PNG image",
    re.compile("GIF8[79]a"): "a GIF image",
    re.compile("PK\x03\x04"): "a ZIP archive, or of an office document",
    re.compile("\x7fELF"): "a program",
    re.compile("OggS|ID3[\x02-\x04]"): "a sound",
}
# What is no letter in any encoding: controls that neither part words nor end lines.
_CONTROLS = dict.fromkeys([*range(1, 8), *range(14, 27), *range(28, 32), 127])


def why_not_text(text: str, broken: int | None = None) -> str | None:
    """What is found in a text that is in none; nothing if it is one.

    Broken bytes are U+FFFD by then. `broken` is how many there are, where not all U+FFFD are.

    >>> why_not_text(b"\\xff\\xd8\\xff\\xe0 JFIF \\x01\\x02".decode(errors="replace"))
    'the beginning of a JPEG image'
    >>> why_not_text("a\\0b"), why_not_text("café")
    ('NUL bytes', None)
    """
    nul, text = "\0" in text, text[:PROBED]
    if text.startswith("%PDF-"):
        return "the beginning of a PDF file"
    if (start := text[:1024]).translate(_CONTROLS) != start or _MARK in start:
        for magic, kind in _MAGIC.items():
            if magic.match(text):
                return f"the beginning of {kind}"
    if nul:
        return "NUL bytes"
    if broken is None:
        broken = text.count(_MARK)
    broken += len(text) - len(text.translate(_CONTROLS))
    if broken >= 16 and broken > 0.3 * len(text):
        return f"{broken} broken bytes among the first {len(text)} characters"
    return None


def refuse_binary(name: str, text: str, broken: int | None = None) -> None:
    """Refuse what is no text, in one line."""
    if (found := why_not_text(text, broken)) is not None:
        raise CorpusError(
            f"{name} is not text (it has {found}); UTF-8 is needed, plain or packed by gzip, "
            "bzip2, xz or zstd; convert it or leave it out"
        )
