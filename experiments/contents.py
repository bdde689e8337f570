"""What the page of the reproduction says, block by block; every number in it is from results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments import ablation, compressors, figures, paper, tables
from experiments.corpora import spoken
from experiments.figures import Curve, best_scale, by_neighbors, by_sharpness, by_words
from experiments.results import Found, find_results, notes, numbers
from experiments.tables import Numbers
from unbounded.evaluation.rows import TITLES
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
    "same text, in brackets below: compare the paper’s bracket with ours."
)
ONLINE = (
    "In tables 2 and 3, “online” weights are learned while reading, with nothing to tune; “fixed” "
    "weights are fitted on the first part of the test text, when the memory is still small, and "
    "that part is not scored. The paper does not say how its own were set. The row “all together” "
    "mixes all experts and is not in the paper. Bold is the lowest of its kind."
)
WHY1 = "the texts, and how much of each was read, since new words keep coming as long as one reads."
WHY4 = (
    "another machine and other code; compare the ratios to static, in brackets. A row’s time is "
    "that of the network, of its own experts and of its mixture, as if it had been alone."
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


Block = Heading | Grid | Picture | str


def grids(results: Path, *scales: str) -> dict[str, Grid]:
    """Every table that has a result, by the name of its files."""
    found = {name: find_results(results, name, *scales) for name in _TABLES}
    return {f"{name}-{one.scale}": _TABLES[name](one) for name, one in found.items() if one.cells}


def pictures(results: Path, *scales: str) -> list[Picture]:
    """Every figure that has a result."""
    nearest = find_results(results, "figure1", *scales)
    reading = [find_results(results, name, *scales) for name in ("figure2", "table2", "table3")]
    return [*_nearest_pictures(nearest), *_reading_pictures(reading)]


def contents(results: Path, *scales: str) -> Iterator[Block]:
    """The whole page; what has no result yet says so."""
    find = partial(find_results, results)
    yield Heading("What can be compared")
    yield COMPARED
    yield ONLINE
    yield from _table("Table 1: vocabulary", find("table1", *scales), WHY1)
    yield from _table("Table 2: near the training text", find("table2", *scales))
    yield from _table("Table 3: far from the training text", find("table3", *scales))
    yield from _table("Table 4: time", find("table4", *scales), WHY4)
    nearest = find("figure1", *scales)
    yield Heading("Figure 1: number of neighbors, and kernels")
    drawn = _nearest_pictures(nearest)
    yield from drawn or notes(nearest)
    if drawn:
        yield _nearest_gain(by_neighbors(nearest))
        yield tables.neighbors_grid(nearest)
        yield tables.kernels_grid(nearest)
    reading = [find(name, *scales) for name in ("figure2", "table2", "table3")]
    yield Heading("Figure 2: words read")
    drawn = _reading_pictures(reading)
    yield from drawn or notes(reading[0])
    if drawn:
        yield _reading_gain(by_words(reading))
        for one in reading:
            if one.cells and one.scale == best_scale(reading):
                yield f"From the results of {one.name}. {' '.join(notes(one))}"
    yield Heading("Beside the paper: dynamic evaluation")
    yield tables.DYNAMIC
    yield tables.dynamic_grid(find("dynamic", *scales))
    yield Heading("Beside the paper: what each part is worth")
    yield ablation.COMPARED
    yield ablation.ablation_grid(find("ablation", *scales))
    yield Heading("Beside the paper: the open protocol, against compressors")
    yield compressors.COMPARED
    yield compressors.bits_grid(find("compressors", *scales))


_PERPLEXITIES: dict[str, Numbers] = {"table2": paper.TABLE2, "table3": paper.TABLE3}
_TABLES: dict[str, Callable[[Found], Grid]] = {
    "table1": tables.vocabulary_grid,
    "table2": lambda found: tables.perplexity_grid(found, paper.TABLE2, TITLE2),
    "table3": lambda found: tables.perplexity_grid(found, paper.TABLE3, TITLE3),
    "table4": tables.seconds_grid,
    "ablation": ablation.ablation_grid,
    "dynamic": tables.dynamic_grid,
    "compressors": compressors.bits_grid,
}


def _table(heading: str, found: Found, why: str = "") -> Iterator[Block]:
    """A table, its gist, and why it is not the paper's."""
    yield Heading(heading)
    yield _TABLES[found.name](found)
    if found.cells and found.name in _PERPLEXITIES:
        yield _gains(found, _PERPLEXITIES[found.name])
        why = _why(found)
    if found.cells:
        yield f"Why they differ: {why}"


def _nearest_pictures(found: Found) -> list[Picture]:
    if not by_neighbors(found) or not by_sharpness(found, "gaussian"):
        return []
    kernel = Kernel()
    return [
        Picture(
            f"figure1-{found.scale}",
            "Figure 1. Entropy of static + unbounded cache less that of static + unigram, against "
            f"the number of neighbors k; lower is better. Kernel: {kernel.shape}, sharpness "
            f"{kernel.sharpness:g}.",
            lambda: figures.draw_neighbors(found),
        ),
        Picture(
            f"figure1-kernels-{found.scale}",
            "Perplexity of static + unbounded cache over that of static + unigram, against the "
            "sharpness of the kernel; lower is better. “All mixed” has every Gaussian as an expert "
            "of one mixture.",
            lambda: figures.draw_kernels(found),
        ),
    ]


def _reading_pictures(found: Sequence[Found]) -> list[Picture]:
    if not by_words(found):
        return []
    return [
        Picture(
            f"figure2-{best_scale(found)}",
            "Figure 2. Entropy of static + unbounded cache less that of static + unigram, against "
            "the number of words read; lower is better. Each point is the mean over the latter "
            "half of the words read by then.",
            lambda: figures.draw_words(found),
        )
    ]


def _gains(found: Found, theirs: Numbers) -> str:
    """The mean change over static of each row, ours and the paper's over the same cells."""
    ours = {pair: cell for pair, cell in numbers(found, "perplexity").items() if "static" in cell}
    said = []
    for row, named in TITLES.items():
        cells = [pair for pair, cell in ours.items() if row in cell]
        if row == "static" or not cells:
            continue
        also = [pair for pair in cells if row in theirs.get(pair, {})]
        beside = f" (paper {_mean_change(theirs, also, row)})" if also else ""
        said.append(f"{named} {_mean_change(ours, cells, row)}{beside}")
    noun = "cell" if len(ours) == 1 else "cells"
    return (
        f"Mean change over static in the {len(ours)} {noun} with a result, online weights: "
        f"{'; '.join(said) or 'none yet'}."
    )


def _mean_change(values: Numbers, pairs: Sequence[tuple[str, str]], row: str) -> str:
    ratios = [values[pair][row] / values[pair]["static"] - 1 for pair in pairs]
    return minus(f"{sum(ratios) / len(ratios):+.1%}")


def _why(found: Found) -> str:
    said = ["the texts are others, and in ours domain and date move together."]
    words = [result["tokens"] for result in found.cells.values()]
    if words and max(words) < paper.TOKENS * 0.9:
        span = " to ".join(f"{count:,}" for count in sorted({min(words), max(words)}))
        said.append(
            f"We score {span} words a cell where the paper scores {paper.TOKENS:,}, so the memory "
            "has had less to read."
        )
    dropouts = {result.get("trained", {}).get("dropout", 0) for result in found.cells.values()}
    if any(dropouts):
        values = ", ".join(f"{value:g}" for value in sorted(dropouts))
        said.append(
            f"Our static model is trained with dropout ({values}), of which the paper says "
            "nothing: it is the stronger for its text, which may leave the memory less to gain."
        )
    return " ".join(said)


def _nearest_gain(curves: Sequence[Curve]) -> str:
    best = [
        f"{spoken(curve.domain)} {curve.x[curve.y.index(min(curve.y))]:,.0f} "
        f"({minus(f'{min(curve.y):+.3f}')} nats)"
        for curve in curves
    ]
    return f"The k with the lowest entropy: {', '.join(best)}."


def _reading_gain(curves: Sequence[Curve]) -> str:
    moved = [
        f"{spoken(curve.domain)} from {minus(f'{curve.y[0]:+.3f}')} nats at {curve.x[0]:,.0f} "
        f"words to {minus(f'{curve.y[-1]:+.3f}')} at {curve.x[-1]:,.0f}"
        for curve in curves
    ]
    return f"As the memory grows: {'; '.join(moved)}."
