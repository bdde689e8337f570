"""What is text and what is not: one check for files, pipes, Python, HTTP and the page."""

import re

from unbounded.errors import CorpusError

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
