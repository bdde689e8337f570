"""What the page of the reproduction says, block by block; every number in it is from results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments import ablation, charts, claims, figures, instead, ladder, paper, tables
from experiments.config import SCALES
from experiments.corpora import spoken
from experiments.figures import Curve, by_neighbors, by_words
from experiments.results import Found, find_table, notes
from unbounded.evaluation.tables import Grid, minus
from unbounded.experts import Kernel

TITLE2 = "Table 2. Perplexity of a model trained on news 2007, tested on news 2007 to 2011"
TITLE3 = "Table 3. Perplexity of models trained on one domain, tested on the others"

COMPARED = (
    "Our texts are not the paper’s. News is Reuters, one agency and mostly business, for News "
    "Crawl; commentary is speeches in the European Parliament, for News Commentary; web is "
    "personal blogs up to 2004, for Common Crawl; wiki is the English Wikipedia of 2006, for "
    "WikiText; books are 99 English novels, for Project Gutenberg. Perplexities on different "
    "texts cannot be compared. What can be is the relative change of a row over static on the "
    "same text, in brackets below: compare the paper’s bracket with ours. Domain and date move "
    "together in our texts, some are shorter than the paper’s 10,000,000 words, so that the memory "
    "has less to read, and our networks are trained with dropout, of which the paper says nothing, "
    "and at half its rate: they are the stronger for it, which may leave the memory less to gain. "
    "The row of the paper’s recipe has the paper’s."
)
ONLINE = (
    "In tables 2 and 3, “online” weights are learned while reading, with nothing to tune; “fixed” "
    "weights are fitted beforehand, on the text that the table names. The paper does not say how "
    "its own were set. The paper’s recipe is all by its words: the network’s training, the kernel, "
    "the number of neighbors and the index; its change is over its own network. The row “all "
    "together” mixes all experts and is not in the paper. Bold is the lowest of its kind."
)


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A figure: the stem of its files, what it shows, and how to draw it."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Words:
    """A table of sentences, each column from its left."""

    grid: Grid


Block = Heading | Grid | Words | Picture | str


def grids(results: Path, scale: str) -> dict[str, Grid]:
    """Every table that has a result at this scale, by the name of its files."""
    found = {name: find_table(results, name, scale) for name in (*_TABLES, "ladder")}
    return {
        f"{name}-{scale}": _TABLES[name](one)
        if name in _TABLES
        else ladder.ladder_grid(results, scale)
        for name, one in found.items()
        if one.cells
    }


def pictures(results: Path) -> list[Picture]:
    """Every figure that has a result."""
    return [block for block in contents(results) if isinstance(block, Picture)]


def contents(results: Path) -> Iterator[Block]:
    """The whole page; what has no result yet says so."""

    def find(name: str) -> Found:
        return find_table(results, name, *SCALES)

    yield Heading("What can be compared")
    yield COMPARED
    yield ONLINE
    yield Heading("Where the paper’s claims stand")
    yield claims.RULE
    yield Words(claims.claims_grid(results))
    yield Heading("Table 1: vocabulary")
    yield _TABLES["table1"](find("table1"))
    yield Heading("Table 2: near the training text")
    yield _TABLES["table2"](find("table2"))
    yield Heading("Table 3: far from the training text")
    yield _TABLES["table3"](find("table3"))
    yield from _reading([find("table2"), find("table3")])
    yield Heading("Table 4: time")
    yield _TABLES["table4"](find("table4"))
    if find("table4").cells:
        yield Picture(
            "costs",
            "Perplexity against time a word, one core; a line a test text, a marker a row.",
            partial(charts.draw_costs, find("table4")),
        )
    nearest = find("figure1")
    yield Heading("Figure 1: number of neighbors, and kernels")
    drawn = _nearest_pictures(nearest)
    yield from drawn or notes(nearest)
    if drawn:
        yield tables.neighbors_grid(nearest)
        yield tables.kernels_grid(nearest)
    reading = [find(name) for name in ("table2", "table3", "figure2")]
    yield Heading("Figure 2: words read")
    drawn = _words_pictures(reading)
    yield from drawn or notes(reading[0])
    if drawn:
        yield _reading_gain(by_words(reading))
        for one in reading:
            if one.cells:
                yield f"From the results of {one.name}. {' '.join(notes(one))}"
    yield Heading("Beside the paper: from its settings to all together")
    yield ladder.COMPARED
    climbed = ladder.climbed(results, *SCALES)
    if climbed:
        yield Picture(
            "ladder",
            "The ladder; each step keeps what is above it, and lower perplexity is to the left.",
            partial(charts.draw_ladder, climbed),
        )
    yield ladder.ladder_grid(results, *SCALES) if climbed else "No results yet."
    parts = find("ablation")
    yield Heading("Beside the paper: what each part is worth")
    yield ablation.COMPARED
    if parts.cells:
        yield Picture(
            "parts",
            "Worth and cost of each part; means over the test texts of the table.",
            partial(charts.draw_parts, parts),
        )
    yield ablation.ablation_grid(parts)
    yield Heading("Beside the paper: what would you use instead?")
    yield instead.COMPARED
    yield _instead(results, find("instead"))


def _instead(results: Path, found: Found) -> Grid:
    return instead.instead_grid(found, results / "transformers" / "cells.jsonl")


_TABLES: dict[str, Callable[[Found], Grid]] = {
    "table1": tables.vocabulary_grid,
    "table2": lambda found: tables.perplexity_grid(found, paper.TABLE2, TITLE2),
    "table3": lambda found: tables.perplexity_grid(found, paper.TABLE3, TITLE3),
    "table4": tables.seconds_grid,
    "ablation": ablation.ablation_grid,
}


def _reading(found: Sequence[Found]) -> Iterator[Block]:
    """How every row goes as it reads, near the training text and far from it."""
    for place, test in (("near to", charts.NEAR), ("far from", charts.FAR)):
        for one in found:
            result = one.cells.get((figures.TRAINED_ON, test), {})
            if charts.reading_curves(result):
                caption = f"Perplexity as it reads {spoken(test)}, {place} the training text"
                yield Picture(
                    f"reading-{place.split()[0]}",
                    f"{caption}; each point is over the words since the one before.",
                    partial(charts.draw_reading, result),
                )


def _nearest_pictures(found: Found) -> list[Picture]:
    if not by_neighbors(found):
        return []
    kernel = Kernel()
    return [
        Picture(
            "figure1",
            "Figure 1. Entropy of static + unbounded cache less that of static + unigram, against "
            f"the number of neighbors k; lower is better. Kernel: {kernel.shape}, sharpness "
            f"{kernel.sharpness:g}.",
            lambda: figures.draw_neighbors(found),
        ),
    ]


def _words_pictures(found: Sequence[Found]) -> list[Picture]:
    if not by_words(found):
        return []
    return [
        Picture(
            "figure2",
            "Figure 2. Entropy of static + unbounded cache less that of static + unigram, against "
            "the number of words read; lower is better. Each point is the mean over the latter "
            "half of the words read by then.",
            lambda: figures.draw_words(found),
        )
    ]


def _reading_gain(curves: Sequence[Curve]) -> str:
    moved = [
        f"{spoken(curve.domain)} from {minus(f'{curve.y[0]:+.3f}')} nats at {curve.x[0]:,.0f} "
        f"words to {minus(f'{curve.y[-1]:+.3f}')} at {curve.x[-1]:,.0f}"
        for curve in curves
    ]
    return f"As the memory grows: {'; '.join(moved)}."
