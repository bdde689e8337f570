"""A table, and the same table as terminal text, Markdown, LaTeX and HTML."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, zip_longest

MISSING = "–"
"""Stands where there is no result yet."""

_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\to$",
    "…": r"\dots{}",
}


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
    rows += [(line.heading, *(_decorated(e, str, "{}") for e in line.entries)) for line in lines]
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


def markdown(grid: Grid) -> str:
    """A GitHub table, its title above and its notes below.

    >>> line = Line("a", (Entry("1", "+2%", best=True), Entry()))
    >>> print(markdown(Grid("T", ("row", "x", "y"), (Part("", (line,)),))))
    **T**
    <BLANKLINE>
    | row | x | y |
    |:--|--:|--:|
    | a | **1** (+2%) | – |
    """
    lines = [_pipes(map(escape_markdown, grid.head)), _sides(grid, "|:--", "|--:") + "|"]
    for part in grid.parts:
        if part.title:
            blank = [""] * (len(grid.head) - 1)
            lines.append(_pipes([f"*{escape_markdown(part.title)}*", *blank]))
        for heading, line, _ in _first_of_each(part.lines):
            cells = [_decorated(entry, escape_markdown, "**{}**") for entry in line.entries]
            lines.append(_pipes([escape_markdown(heading), *cells]))
    notes = "".join(f"\n\n{escape_markdown(note)}" for note in grid.notes)
    title = f"**{escape_markdown(grid.title)}**\n\n" if grid.title else ""
    return title + "\n".join(lines) + notes


def latex(grid: Grid) -> str:
    """A `table` for a paper; it needs the package booktabs."""
    width = len(grid.head)
    lines = [_ampersands(map(escape_latex, grid.head)), r"\midrule"]
    for place, part in enumerate(grid.parts):
        if place:
            lines.append(r"\midrule")
        if part.title:
            title = rf"\emph{{{escape_latex(part.title)}}}"
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\")
        for heading, line, _ in _first_of_each(part.lines):
            cells = [_decorated(entry, escape_latex, r"\textbf{{{}}}") for entry in line.entries]
            lines.append(_ampersands([escape_latex(heading), *cells]))
    caption = " ".join(escape_latex(text) for text in (f"{grid.title}.", *grid.notes))
    body = "\n    ".join([rf"\begin{{tabular}}{{{_sides(grid, 'l', 'r')}}}", r"\toprule", *lines])
    return (
        rf"""\begin{{table}}
  \centering
  \small
    {body}
    \bottomrule
    \end{{tabular}}
  \caption{{{caption}}}
\end{{table}}"""
        + "\n"
    )


def html(grid: Grid) -> str:
    """A table with headings for lines and columns; each cell has its column's too, so that a style
    sheet can set them one below the other where many are too wide."""
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in grid.head)
    bodies = []
    for part in grid.parts:
        lines = []
        if part.title:
            width = len(grid.head)
            lines.append(f"<tr><th class=part colspan={width}>{escape(part.title)}</th></tr>")
        for heading, line, span in _first_of_each(part.lines):
            scope = f"scope=rowgroup rowspan={span}" if span > 1 else "scope=row"
            first = f"<th {scope}>{escape(heading)}</th>" if span else ""
            cells = [_decorated(entry, escape, "<strong>{}</strong>") for entry in line.entries]
            columns = zip(grid.head[1:], cells, strict=True)
            tags = [
                f'<td data-of="{escape(name)}">{cell}</td>'
                if name
                else f"<td class=whose>{cell}</td>"
                for name, cell in columns
            ]
            style = f' class="{escape(line.style)}"' if line.style else ""
            lines.append(f"<tr{style}>{first}{''.join(tags)}</tr>")
        bodies.append("<tbody>\n" + "\n".join(lines) + "\n</tbody>")
    count = len(grid.head)
    wide = " many" if count > 8 else " some" if count > 5 else ""
    notes = "".join(f"\n<p class=soft>{escape(note)}</p>" for note in grid.notes)
    return (
        f'<div class="scroll{wide}" role=region tabindex=0 aria-label="{escape(grid.title)}">'
        "<table>"
        f"<caption>{escape(grid.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        + "\n".join(bodies)
        + f"</table></div>{notes}"
    )


def escape_markdown(text: str) -> str:
    """The text as it is, where a sign of it would mean something.

    >>> escape_markdown("a|b <c> *d*")
    'a\\\\|b \\\\<c> \\\\*d\\\\*'
    """
    return re.sub(r"([\\|*<`\[\]])", r"\\\1", text)


def escape_latex(text: str) -> str:
    """The text as it is, where a sign of it would mean something.

    >>> escape_latex("50% & −2 → a_b")
    '50\\\\% \\\\& $-$2 $\\\\to$ a\\\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def _first_of_each(lines: Sequence[Line]) -> Iterator[tuple[str, Line, int]]:
    """Each line with its heading and how many it stands for; both nothing where it would repeat."""
    for heading, same in groupby(lines, key=lambda line: line.heading):
        together = list(same)
        yield heading, together[0], len(together)
        for line in together[1:]:
            yield "", line, 0


def _decorated(entry: Entry, escaped: Callable[[str], str], bold: str) -> str:
    text = escaped(entry.text)
    text = bold.format(text) if entry.best else text
    return f"{text} ({escaped(entry.remark)})" if entry.remark else text


def _sides(grid: Grid, left: str, right: str) -> str:
    """Words to the left, numbers to the right."""
    return left + "".join(right if name else left for name in grid.head[1:])


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def _ampersands(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def minus(text: str) -> str:
    """A minus as long as the plus, which a screen reader reads as one."""
    return text.replace("-", "−")


def change(value: float, base: float) -> str:
    """How much more or less than the base, in percent."""
    ratio = value / base - 1
    return minus(f"{ratio:+.1%}") if math.isfinite(ratio) else MISSING
