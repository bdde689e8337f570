"""What each part of `full` is worth: one reading, and a mixture without each part in turn."""

from collections.abc import Callable, Mapping
from typing import Any, final

from experiments.cells import run_cell
from experiments.config import Cell
from experiments.corpora import Corpora, domain_order, spoken
from experiments.results import Found, notes
from unbounded.evaluation.metrics import Tally, surprise
from unbounded.evaluation.rows import Row, ScoredBlock
from unbounded.evaluation.tables import Entry, Grid, Line, Part, minus
from unbounded.lm import Pretrained

PARTS: Mapping[str, tuple[str, ...]] = {
    "static softmax": ("static",),
    "adapted output layer": ("adapted",),
    "output layer that goes on training": ("dynamic_head",),
    "unigram": ("unigram",),
    "n-grams of the text": ("ngram",),
    "n-grams of the training text": ("train_ngram",),
    "both n-grams": ("ngram", "train_ngram"),
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


@final
class Ablation:
    """Hears each block and mixes it again, without each part in turn."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: dict[str, Row] = {}
        self._tallies: dict[str, Tally] = {}
        self._seconds: dict[str, float] = {}

    def __call__(self, block: ScoredBlock) -> None:
        """Count a block."""
        reading = block.reading
        if not self._rows:
            self._begin(block.row_experts["full"])
        for name, row in self._rows.items():
            nats = surprise(row.score(reading, row.columns(reading)).prob)
            self._tallies[name].add(float(nats.sum()), len(nats), 0)
        for name, seconds in reading.seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def _begin(self, experts: tuple[str, ...]) -> None:
        for part, left_out in PARTS.items():
            kept = tuple(name for name in experts if name not in left_out)
            if len(kept) < len(experts):
                self._rows[part] = Row("full", kept, self._width)
            elif not left_out:
                # By another name than that of the gated row: one set of weights for all states.
                self._rows[part] = Row("even", kept, self._width)
        self._tallies = {part: Tally() for part in self._rows}

    def to_json(self) -> dict[str, Any]:
        """Perplexity without each part, and seconds a word of each expert."""
        tokens = max((tally.tokens for tally in self._tallies.values()), default=0)
        return {
            "without": {part: tally.perplexity for part, tally in self._tallies.items()},
            "seconds": {name: total / max(tokens, 1) for name, total in self._seconds.items()},
        }


def run_ablation(
    cell: Cell,
    model: Pretrained,
    corpora: Corpora,
    progress: Callable[[int], Callable[[int, str], None]],
) -> dict[str, Any]:
    """The row `full` of a cell, and what it would be without each part."""
    ablation = Ablation(model.lm.width)
    result = run_cell(cell, model, corpora, progress, watchers=(ablation,))
    return {**result, **ablation.to_json()}


def ablation_grid(found: Found) -> Grid:
    """One line a part, one column a test text, and the time of the part."""
    cells = sorted(found.cells.items(), key=lambda pair: domain_order(pair[0][1]))
    whole = {pair: _full(result) for pair, result in cells}
    parts = dict.fromkeys(part for _, result in cells for part in result["without"])
    lines = [Line("all together", (*(Entry(f"{whole[pair]:,.1f}") for pair, _ in cells), Entry()))]
    for part in parts:
        entries = (_entry(result["without"].get(part), whole[pair]) for pair, result in cells)
        costs = [_microseconds(result, part) for _, result in cells]
        cost = f"{sum(costs) / len(costs):,.1f}" if PARTS.get(part) else ""
        lines.append(Line(f"without {part}", (*entries, Entry(cost))))
    return Grid(
        "Perplexity of all together, without one part",
        ("", *(spoken(test) for (_, test), _ in cells), "µs a word"),
        (Part("", tuple(lines)),),
        notes(found),
    )


def _full(result: Mapping[str, Any]) -> float:
    return next(float(row["perplexity"]) for row in result["rows"] if row["name"] == "full")


def _entry(perplexity: float | None, whole: float) -> Entry:
    if perplexity is None:
        return Entry()
    return Entry(minus(f"{perplexity:,.1f} ({perplexity / whole - 1:+.1%})"))


def _microseconds(result: Mapping[str, Any], part: str) -> float:
    return 1e6 * sum((float(result["seconds"].get(name, 0.0)) for name in PARTS.get(part, ())), 0.0)
