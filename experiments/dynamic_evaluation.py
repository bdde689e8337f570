"""The table of what one would pick instead of a memory: dynamic evaluation, and its time."""

from experiments.markup import Entry, Grid, Line, Part
from experiments.results import Found
from experiments.tables import domain_order, notes, numbers, spoken
from unbounded.evaluation.rows import TITLES
from unbounded.evaluation.tables import minus

COMPARED = (
    "Dynamic evaluation (Krause et al., 2018) goes on training the network on the text that it "
    "reads. Both columns are of one run, the times in microseconds of wall clock a word, at the "
    "paper’s scale with one thread. From a second thread dynamic evaluation gains nothing, all "
    "together a quarter of its time (docs/log.md)."
)


def dynamic_grid(found: Found) -> Grid:
    """One line a cell: perplexity and time of both, and what everything together saves."""
    perplexity, seconds = numbers(found, "perplexity"), numbers(found, "seconds_per_token")
    lines = []
    for train, test in sorted(found.cells, key=lambda pair: (pair[0], domain_order(pair[1]))):
        scored, took = perplexity[train, test], seconds[train, test]
        if not {"dynamic", "full"} <= scored.keys() & took.keys():
            continue
        entries = (
            Entry(spoken(test)),
            Entry(f"{scored['dynamic']:,.1f}", best=scored["dynamic"] < scored["full"]),
            Entry(f"{scored['full']:,.1f}", best=scored["full"] < scored["dynamic"]),
            Entry(minus(f"{scored['full'] / scored['dynamic'] - 1:+.1%}")),
            Entry(f"{1e6 * took['dynamic']:,.0f}"),
            Entry(f"{1e6 * took['full']:,.0f}"),
            Entry(f"{took['dynamic'] / took['full']:.1f}"),
        )
        lines.append(Line(spoken(train), entries))
    both = (TITLES["dynamic"], TITLES["full"])
    return Grid(
        "All together against dynamic evaluation",
        ("trained on", "tested on", *both, "change", *(f"µs, {name}" for name in both), "times"),
        (Part("", tuple(lines)),),
        notes(found),
    )
