"""Everything drawn from results: tables, figures, and the pages that show them."""

from collections.abc import Iterable
from pathlib import Path

from experiments.config import SCALES
from experiments.contents import (
    Block,
    Heading,
    Picture,
    Words,
    contents,
    grids,
    pictures,
)
from experiments.markup import escape_markdown, markdown
from experiments.results import find_table
from experiments.tables import readme_grid
from unbounded.errors import SettingError
from unbounded.evaluation.figures import write_figure
from unbounded.evaluation.tables import Grid
from unbounded.files import write_text_atomically

BEGIN = "<!-- tables -->"
END = "<!-- /tables -->"
START = f"# The paper’s experiments, run again\n\n{BEGIN}\n{END}\n"
FIGURES = "../experiments/results/figures"


def draw_all(experiments: Path) -> list[Path]:
    """Write the tables of every scale that has results, the figures, and the pages."""
    root, results = experiments.absolute().parent, experiments / "results"
    written = [
        *(path for scale in SCALES for path in _write_tables(results, scale)),
        *_write_figures(results),
    ]
    docs = root / "docs" / "reproduce.md"
    written.append(fill(docs, page_part(results)))
    if (root / "README.md").exists():
        written.append(fill(root / "README.md", readme_part(results)))
    return written


def fill(page: Path, part: str) -> Path:
    """Write what is between a page's markers, and only that."""
    page.parent.mkdir(parents=True, exist_ok=True)
    old = page.read_text(encoding="utf-8") if page.exists() else START
    if BEGIN not in old or END not in old.partition(BEGIN)[2]:
        raise SettingError(
            f"{page} has no place for the tables; put the lines {BEGIN} and {END} into it"
        )
    before, _, rest = old.partition(BEGIN)
    write_text_atomically(page, f"{before}{BEGIN}\n{part}{END}{rest.partition(END)[2]}")
    return page


def page_part(results: Path) -> str:
    """What `reproduce.md` says: it depends on the results and on nothing else."""
    return "\n" + "\n\n".join(map(_as_markdown, contents(results))) + "\n\n"


def readme_part(results: Path) -> str:
    """The README's table."""
    found = (find_table(results, name, *SCALES) for name in ("table2", "table3"))
    return f"\n{markdown(readme_grid(*found))}\n\n"


def _as_markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {escape_markdown(text)}"
        case Words(grid):
            return markdown(grid).replace("|--:", "|:--")
        case Grid():
            return markdown(block)
        case Picture(name, caption, _):
            alt, _, _ = caption.partition(";")
            return f"![{escape_markdown(alt)}]({FIGURES}/{name}.svg)\n\n{escape_markdown(caption)}"
        case str():
            return escape_markdown(block)


def _write_tables(results: Path, scale: str) -> Iterable[Path]:
    folder = results / "tables"
    for name, grid in grids(results, scale).items():
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.md"
        write_text_atomically(path, f"{markdown(grid)}\n")
        yield path


def _write_figures(results: Path) -> Iterable[Path]:
    for picture in pictures(results):
        yield write_figure(picture.draw(), results / "figures" / f"{picture.name}.svg")
