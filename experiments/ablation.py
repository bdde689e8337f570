"""What each part of `full` is worth: one reading, and a mixture without each part in turn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.cells import read_cell, usual_lines
from experiments.config import Cell
from experiments.corpora import Corpora, domain_order, spoken
from experiments.reading import Mixing
from experiments.results import Found, notes
from unbounded.evaluation.tables import Entry, Grid, Line, Part, minus
from unbounded.lm import Pretrained

PARTS: Mapping[str, tuple[str, ...]] = {
    "static softmax": ("static",),
    "adapted output layer": ("adapted",),
    "output layer that goes on training": ("dynamic_head",),
    "unigram": ("unigram",),
    "n-grams": ("ngrams",),
    "cache of the last 128": ("cache_128",),
    "cache of the last 1,024": ("cache_1024",),
    "both small caches": ("cache_128", "cache_1024"),
    "unbounded cache": ("unbounded",),
    "weights that depend on the state": (),
}
"""Each part and its experts; the uniform stays, for nothing else can give an OOV word a share."""

COMPARED = (
    "Everything is read once; for each line a mixture of its own goes without one part, and learns "
    "as it reads. In brackets how much higher the perplexity is for it: what a part is worth when "
    "all others are there. The times are those of the part’s experts alone, in microseconds of "
    "wall clock a word."
)


def ablation_lines() -> dict[str, Mixing]:
    """The row `full`, and the same without each part."""
    full = usual_lines(["full"])["full"]
    lines = {"full": full}
    for part, left_out in PARTS.items():
        kept = tuple(name for name in full.experts if name not in left_out)
        if len(kept) < len(full.experts) or not left_out:
            lines[part] = Mixing(kept, gated=bool(left_out))
    return lines


def read_ablation(cell: Cell, model: Pretrained, corpora: Corpora, kept: Path) -> dict[str, Any]:
    """The row `full` of a cell, and what it would be without each part."""
    result = read_cell(cell, model, corpora, kept, ablation_lines())
    full, *others = result["rows"]
    without = {row["name"]: row["perplexity"] for row in others}
    return {**result, "rows": [full], "without": without, "curve": {}}


def ablation_grid(found: Found) -> Grid:
    """One line a part, one column a test text, and the time of the part."""
    cells = sorted(found.cells.items(), key=lambda pair: domain_order(pair[0][1]))
    whole = {pair: full_perplexity(result) for pair, result in cells}
    parts = dict.fromkeys(part for _, result in cells for part in result["without"])
    lines = [Line("all together", (*(Entry(f"{whole[pair]:,.1f}") for pair, _ in cells), Entry()))]
    for part in parts:
        entries = (_entry(result["without"].get(part), whole[pair]) for pair, result in cells)
        costs = [microseconds(result, part) for _, result in cells]
        cost = f"{sum(costs) / len(costs):,.1f}" if PARTS.get(part) else ""
        lines.append(Line(f"without {part}", (*entries, Entry(cost))))
    return Grid(
        "Perplexity of all together, without one part",
        ("", *(spoken(test) for (_, test), _ in cells), "µs a word"),
        (Part("", tuple(lines)),),
        notes(found),
    )


def full_perplexity(result: Mapping[str, Any]) -> float:
    """Of everything together."""
    return next(float(row["perplexity"]) for row in result["rows"] if row["name"] == "full")


def microseconds(result: Mapping[str, Any], part: str) -> float:
    """What a part's experts take a word."""
    return 1e6 * sum((float(result["seconds"].get(name, 0.0)) for name in PARTS.get(part, ())), 0.0)


def _entry(perplexity: float | None, whole: float) -> Entry:
    if perplexity is None:
        return Entry()
    return Entry(minus(f"{perplexity:,.1f} ({perplexity / whole - 1:+.1%})"))
