"""The paper's tables with our numbers beside its own, made from results and from nothing else."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from experiments import paper
from experiments.corpora import domain_order, spoken
from experiments.figures import Curve, all_sharpnesses, by_neighbors, by_sharpness
from experiments.paper import Pair
from experiments.results import Found, listed, notes, numbers
from unbounded.evaluation.rows import TITLES, USUAL
from unbounded.evaluation.tables import Entry, Grid, Line, Part, change, minus

Numbers = Mapping[Pair, Mapping[str, float]]
"""One number a row, for each training and test domain."""

DYNAMIC = (
    "Dynamic evaluation (Krause et al., 2018) goes on training the network on the text that it "
    "reads. Both columns are of one run, the times in microseconds of wall clock a word, at the "
    "paper’s scale with one thread. From a second thread dynamic evaluation gains nothing, all "
    "together a quarter of its time (docs/log.md)."
)

PAPER = "paper"
ONLINE = "ours, online"
FIXED = "ours, fixed"


def vocabulary_grid(found: Found) -> Grid:
    """Table 1: how many different words there are, and how many come as OOV words."""
    lines = []
    for pair in _pairs(paper.TABLE1, found.cells):
        theirs, ours = paper.TABLE1.get(pair), found.cells.get(pair)
        lines.append(
            Line(
                spoken(pair[1]),
                (
                    Entry(f"{theirs['size']:,.0f}") if theirs else Entry(),
                    Entry(f"{ours['vocabulary']:,}") if ours else Entry(),
                    Entry(f"{ours['types']:,}") if ours else Entry(),
                    Entry(f"{theirs['oov_percent']:.1f}%") if theirs else Entry(),
                    Entry(f"{ours['oov_rate']:.1%}") if ours else Entry(),
                ),
            )
        )
    head = ("test text", "size, paper", "size, ours", "test text alone, ours")
    return Grid(
        "Table 1. Vocabulary size and out-of-vocabulary (OOV) rate, for a model trained on "
        "news 2007",
        (*head, "OOV, paper", "OOV, ours"),
        (Part("", tuple(lines)),),
        ("Our size counts the different words of training and test text together.", *notes(found)),
    )


def perplexity_grid(found: Found, theirs: Numbers, title: str) -> Grid:
    """Tables 2 and 3: perplexities, and in brackets the change of each over its own static."""
    sources = {
        PAPER: theirs,
        ONLINE: numbers(found, "perplexity"),
        FIXED: numbers(found, "fixed_perplexity"),
    }
    pairs = _pairs(theirs, found.cells)
    tests = list(dict.fromkeys(sorted((test for _, test in pairs), key=domain_order)))
    trains = list(dict.fromkeys(train for train, _ in pairs))
    parts = []
    measured = {row for values in sources.values() for cell in values.values() for row in cell}
    shown = {row: named for row, named in TITLES.items() if row in measured.union(USUAL)}
    for train in trains:
        lines = []
        for row, named in shown.items():
            for whose, values in sources.items():
                if whose == PAPER and not any(row in cell for cell in theirs.values()):
                    continue
                entries = [
                    _perplexity(values.get((train, test), {}), row)
                    if (train, test) in pairs
                    else Entry("")  # No experiment, in the paper or here.
                    for test in tests
                ]
                lines.append(Line(named, (Entry(whose), *entries)))
        parts.append(Part(f"trained on {spoken(train)}" if len(trains) > 1 else "", tuple(lines)))
    said = (*_hindsight(found), *notes(found))
    return Grid(title, ("model", "", *map(spoken, tests)), tuple(parts), said)


def _hindsight(found: Found) -> tuple[str, ...]:
    """How near learned weights come to the best fixed ones, which nobody knows beforehand."""
    best = numbers(found, "hindsight_perplexity")
    learned = numbers(found, "perplexity")
    losses = [
        learned[pair][row] / known - 1 for pair, rows in best.items() for row, known in rows.items()
    ]
    if not losses:
        return ()
    worst, least = minus(f"{max(losses):+.2%}"), minus(f"{min(losses):+.2%}")
    return (
        f"Weights learned online against the best fixed ones for the test text itself, fitted in "
        f"hindsight: from {least} to {worst} of perplexity over all rows and cells that have both.",
    )


def seconds_grid(found: Found) -> Grid:
    """Table 4: seconds for 10 M words, and in brackets how many times those of static."""
    ours = {
        pair: {name: value / found.cells[pair]["tokens"] * paper.TOKENS for name, value in rows}
        for pair, cell in numbers(found, "seconds").items()
        for rows in [cell.items()]
    }
    rows = [row for row in TITLES if any(row in cell for cell in paper.TABLE4.values())]
    lines = [
        Line(spoken(pair[1]), (Entry(whose), *(_seconds(values.get(pair, {}), r) for r in rows)))
        for pair in _pairs(paper.TABLE4, found.cells)
        for whose, values in ((PAPER, paper.TABLE4), ("ours", ours))
    ]
    machines = {str(result.get("machine", "unknown")) for result in found.cells.values()}
    measured = (
        f"Measured on {listed(machines)}, and scaled to {paper.TOKENS:,} words from those "
        "actually read; the paper names no machine."
    )
    return Grid(
        f"Table 4. Seconds to read {paper.TOKENS:,} words",
        ("test text", "", *(TITLES[row] for row in rows)),
        (Part("", tuple(lines)),),
        (*((measured,) if found.cells else ()), *notes(found)),
    )


def neighbors_grid(found: Found) -> Grid:
    """Figure 1 in numbers."""
    curves = by_neighbors(found)
    domains = [curve.domain for curve in curves]
    return Grid(
        "Figure 1 in numbers. Nats a word against static + unigram, by number of neighbors k",
        ("k", *map(spoken, domains)),
        (_part("", domains, curves, lambda value: minus(f"{value:+.3f}")),),
        notes(found),
    )


def kernels_grid(found: Found) -> Grid:
    """Figure 1's companion in numbers."""
    every = all_sharpnesses(found)
    gaussian = by_sharpness(found, "gaussian")
    domains = [curve.domain for curve in gaussian]
    together = tuple(
        Entry(_percent(every[domain])) if domain in every else Entry() for domain in domains
    )
    return Grid(
        "Change of perplexity over static + unigram, by kernel and sharpness",
        ("sharpness", *map(spoken, domains)),
        (
            _part("Gaussian", domains, gaussian, _percent),
            Part("", (Line("all of them, mixed", together),)),
            _part("Epanechnikov", domains, by_sharpness(found, "epanechnikov"), _percent),
        ),
        notes(found),
    )


def _part(
    title: str, domains: Sequence[str], curves: Sequence[Curve], shown: Callable[[float], str]
) -> Part:
    """A column a domain and a line for each x that some curve has."""
    at = {curve.domain: dict(zip(curve.x, curve.y, strict=True)) for curve in curves}
    lines = []
    for x in sorted({x for curve in curves for x in curve.x}):
        values = [at.get(domain, {}).get(x) for domain in domains]
        entries = tuple(Entry() if value is None else Entry(shown(value)) for value in values)
        lines.append(Line(f"{x:g}", entries))
    return Part(title, tuple(lines))


def _perplexity(cell: Mapping[str, float], row: str) -> Entry:
    if row not in cell:
        return Entry()
    value = cell[row]
    remark = change(value, cell["static"]) if row != "static" and "static" in cell else ""
    return Entry(f"{value:,.1f}", remark, best=len(cell) > 1 and value == min(cell.values()))


def _seconds(cell: Mapping[str, float], row: str) -> Entry:
    if row not in cell:
        return Entry()
    times = f"×{cell[row] / cell['static']:.1f}" if row != "static" and "static" in cell else ""
    return Entry(f"{cell[row]:,.0f}", times)


def _percent(ratio: float) -> str:
    return minus(f"{ratio:+.1%}")


def _pairs(*sources: Iterable[Pair]) -> list[Pair]:
    """Every pair that some source has, once, in the order of training and test domains."""
    return sorted(
        {pair for source in sources for pair in source}, key=lambda p: list(map(domain_order, p))
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
