"""A table, and the same table as terminal text and as HTML."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import zip_longest

MISSING = "–"
"""Stands where there is no result yet."""


@dataclass(frozen=True)
class Entry:
    """A number as it is shown, what is said of it in brackets, and whether it is the best."""

    text: str = MISSING
    remark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Line:
    """One line; lines next to each other with the same heading belong together.

    `style` names classes of a style sheet, which only HTML has.
    """

    heading: str
    entries: tuple[Entry, ...]
    style: str = ""


@dataclass(frozen=True)
class Part:
    """Some lines under a title of their own, which may be empty."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Grid:
    """A table: its title, a heading a column, its parts, and what is said under it.

    A column without a heading says whose the line's numbers are.
    """

    title: str
    head: tuple[str, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = field(default=())


def plain(title: str, head: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]) -> Grid:
    """A table of one part with nothing but texts in it."""
    found = (Line(heading, tuple(map(Entry, cells))) for heading, cells in lines)
    return Grid(title, tuple(head), (Part("", tuple(found)),))


def text(grid: Grid, widths: Sequence[int] = ()) -> str:
    """For a terminal: columns as wide as they need, at least `widths`; a best entry stars its line.

    >>> print(text(plain("T", ("row", "x"), [("a", ["1"]), ("b", ["1,000"])])))
    T
    row        x
    a          1
    b      1,000
    """
    lines = [line for part in grid.parts for line in part.lines]
    rows = [grid.head]
    rows += [(line.heading, *(decorated(e, str, "{}") for e in line.entries)) for line in lines]
    stars = ["", *(" *" * any(entry.best for entry in line.entries) for line in lines)]
    needed = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    left, *right = (max(pair) for pair in zip_longest(needed, widths, fillvalue=0))
    drawn = [
        f"{heading:<{left}}" + "".join(f"{c:>{w}}" for c, w in zip(cells, right, strict=True))
        for heading, *cells in rows
    ]
    body = [f"{line}{star}".rstrip() for line, star in zip(drawn, stars, strict=True)]
    best = ["* the best"] if any(stars) else []
    return "\n".join([*filter(None, [grid.title]), *body, *best, *grid.notes])


def html(grid: Grid) -> str:
    """A table with headings for lines and columns; each cell has its column's too, so that a style
    sheet can set them one below the other where many are too wide."""
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in grid.head)
    rows = []
    for line in (line for part in grid.parts for line in part.lines):
        cells = [decorated(entry, escape, "<strong>{}</strong>") for entry in line.entries]
        tags = [
            f'<td data-of="{escape(name)}">{cell}</td>'
            for name, cell in zip(grid.head[1:], cells, strict=True)
        ]
        style = f' class="{escape(line.style)}"' if line.style else ""
        heading = f"<th scope=row>{escape(line.heading)}</th>"
        rows.append(f"<tr{style}>{heading}{''.join(tags)}</tr>")
    count = len(grid.head)
    wide = " many" if count > 8 else " some" if count > 5 else ""
    return (
        f'<div class="scroll{wide}" role=region tabindex=0 aria-label="{escape(grid.title)}">'
        "<table>"
        f"<caption>{escape(grid.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        "<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def decorated(entry: Entry, escaped: Callable[[str], str], bold: str) -> str:
    """An entry as text, its remark behind it; `bold` is how the best one is written."""
    text = escaped(entry.text)
    text = bold.format(text) if entry.best else text
    return f"{text} ({escaped(entry.remark)})" if entry.remark else text


def minus(text: str) -> str:
    """A minus as long as the plus, which a screen reader reads as one."""
    return text.replace("-", "−")


def change(value: float, base: float) -> str:
    """How much more or less than the base, in percent."""
    ratio = value / base - 1
    return minus(f"{ratio:+.1%}") if math.isfinite(ratio) else MISSING
