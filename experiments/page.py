"""Everything drawn from results: tables, figures, and the page that shows both."""

import os
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from experiments import figures
from experiments.config import SCALES
from experiments.contents import Block, Heading, Picture, contents, grids, pictures
from unbounded.errors import SettingError
from unbounded.evaluation.figures import write_figure
from unbounded.evaluation.tables import Grid, escape_markdown, html, latex, markdown
from unbounded.files import write_text_aside

BEGIN = "<!-- tables -->"
END = "<!-- /tables -->"
START = f"# The paper’s experiments, run again\n\n{BEGIN}\n{END}\n"
BEST_FIRST = SCALES[::-1]
"""The page shows each table at the paper's scale where there is any result of it."""

_HTML = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>The paper’s experiments, run again · unbounded</title>
<style>$style
:root { --books: #7c3aed; }
@media (prefers-color-scheme: dark) { :root { --books: #b794ff; } }
figure { max-width: 46rem; margin: 1.5rem 0; }
table, p.soft { font-size: .875rem; }
th, td { padding: .3rem .5rem; }
thead th, td { white-space: nowrap; }
tbody th { vertical-align: top; }
.whose { text-align: left; color: var(--soft); }
.part { padding-top: 1.2rem; font-weight: 650; }
</style>
</head>
<body>
<header>
<h1>The paper’s experiments, run again</h1>
<p class="lead">Unbounded cache model for online language modeling with open vocabulary (Grave,
Cisse and Joulin, 2017): the paper’s numbers, ours, and why they differ.</p>
</header>
<main>
$body
</main>
</body>
</html>
""")


def draw_all(experiments: Path, docs: Path) -> list[Path]:
    """Write the tables and figures of every scale that has results, and the page."""
    results = experiments / "results"
    written = [
        path
        for scale in SCALES
        for path in (*_write_tables(results, scale), *_write_figures(results, scale))
    ]
    return [*written, *write_page(results, docs)]


def write_page(results: Path, docs: Path) -> list[Path]:
    """Write `reproduce.md`, only what is between its markers, and its twin `reproduce.html`."""
    docs.mkdir(parents=True, exist_ok=True)
    page, fork = docs / "reproduce.md", docs / "reproduce.html"
    old = page.read_text(encoding="utf-8") if page.exists() else START
    if BEGIN not in old or END not in old.partition(BEGIN)[2]:
        raise SettingError(
            f"{page} has no place for the tables; put the lines {BEGIN} and {END} into it"
        )
    before, _, rest = old.partition(BEGIN)
    after = rest.partition(END)[2]
    write_text_aside(page, f"{before}{BEGIN}\n{tables_part(results, docs)}{END}{after}")
    write_text_aside(fork, html_page(results))
    return [page, fork]


def tables_part(results: Path, docs: Path) -> str:
    """What is between the markers: it depends on the results and on nothing else."""
    link = Path(os.path.relpath(results / "figures", docs)).as_posix()
    blocks = [_as_markdown(block, link) for block in contents(results, *BEST_FIRST)]
    return "\n" + "\n\n".join(blocks) + "\n\n"


def html_page(results: Path) -> str:
    """One self-contained page, light or dark, that asks no host."""
    report = files("unbounded.evaluation").joinpath("page.html").read_text("utf-8")
    # The reports' own style sheet, so that both look alike whatever becomes of it.
    style = report.partition("<style>")[2].partition("</style>")[0]
    body = "\n".join(map(_as_html, contents(results, *BEST_FIRST)))
    return _HTML.substitute(style=style, body=body)


def _as_markdown(block: Block, link: str) -> str:
    match block:
        case Heading(text):
            return f"## {escape_markdown(text)}"
        case Grid():
            return markdown(block)
        case Picture(name, caption, _):
            alt, _, _ = caption.partition(";")
            return f"![{escape_markdown(alt)}]({link}/{name}.svg)\n\n{escape_markdown(caption)}"
        case str():
            return escape_markdown(block)


def _as_html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Grid():
            return html(block)
        case Picture(name, caption, draw):
            drawn = figures.inline(draw(), name, caption)
            return f"<figure>\n{drawn}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
        case str():
            return f"<p>{escape(block)}</p>"


def _write_tables(results: Path, scale: str) -> Iterable[Path]:
    folder = results / "tables"
    for name, grid in grids(results, scale).items():
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("md", markdown(grid) + "\n"), ("tex", latex(grid))):
            path = folder / f"{name}.{suffix}"
            write_text_aside(path, text)
            yield path


def _write_figures(results: Path, scale: str) -> Iterable[Path]:
    for picture in pictures(results, scale):
        figure, stem = picture.draw(), results / "figures" / picture.name
        yield from (
            write_figure(figure, stem.with_name(f"{stem.name}.{s}")) for s in ("svg", "png")
        )
