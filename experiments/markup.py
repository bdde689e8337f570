"""Tables as Markdown."""

import re
from collections.abc import Iterable
from itertools import groupby

from unbounded.evaluation.tables import Grid, decorated


def markdown(grid: Grid) -> str:
    """A GitHub table, its title above and its notes below; headings that repeat are left out.

    >>> from unbounded.evaluation.tables import Entry, Line, Part
    >>> line = Line("a", (Entry("1", "+2%", best=True), Entry()))
    >>> print(markdown(Grid("T", ("row", "x", "y"), (Part("", (line,)),))))
    **T**
    <BLANKLINE>
    | row | x | y |
    |:--|--:|--:|
    | a | **1** (+2%) | – |
    """
    # Words to the left, numbers to the right; a column without a heading has words.
    sides = "".join("|--:" if name else "|:--" for name in grid.head[1:])
    lines = [_pipes(map(escape_markdown, grid.head)), f"|:--{sides}|"]
    for part in grid.parts:
        if part.title:
            lines.append(_pipes([f"*{escape_markdown(part.title)}*", *[""] * (len(grid.head) - 1)]))
        for heading, same in groupby(part.lines, key=lambda line: line.heading):
            shown = [heading]
            for line in same:
                cells = (decorated(entry, escape_markdown, "**{}**") for entry in line.entries)
                lines.append(_pipes([escape_markdown(shown.pop() if shown else ""), *cells]))
    notes = "".join(f"\n\n{escape_markdown(note)}" for note in grid.notes)
    title = f"**{escape_markdown(grid.title)}**\n\n" if grid.title else ""
    return title + "\n".join(lines) + notes


def escape_markdown(text: str) -> str:
    """The text as it is, where a sign of it would mean something.

    >>> escape_markdown("a|b <c> *d*")
    'a\\\\|b \\\\<c> \\\\*d\\\\*'
    """
    return re.sub(r"([\\|*<`\[\]])", r"\\\1", text)


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  ", " ")
