"""The paper's tables with our numbers beside its own, made from results and from nothing else."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from experiments import paper
from experiments.corpora import domain_order, spoken
from experiments.figures import Curve, all_sharpnesses, by_neighbors, by_sharpness
from experiments.paper import Pair
from experiments.results import Found, listed, notes, numbers
from unbounded.evaluation.rows import TITLES as TITLES_OF_ROWS
from unbounded.evaluation.rows import USUAL
from unbounded.evaluation.tables import Entry, Grid, Line, Part, change, minus

TITLES = {
    **{row: TITLES_OF_ROWS[row] for row in USUAL if row != "full"},
    "paper": "static + unbounded cache, the paper’s settings",
    "recipe_static": "static, the paper’s recipe",
    "recipe": "static + unbounded cache, the paper’s recipe",
    "full": TITLES_OF_ROWS["full"],
}
"""The rows of the tables, in order."""

Numbers = Mapping[Pair, Mapping[str, float]]
"""One number a row, for each training and test domain."""

TIMED = (
    "Compare the ratios to static, in brackets. A row’s time is that of the network, of its own "
    "experts and of its mixture, as if it had been alone."
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
                    Entry(f"{ours['tokens']:,}") if ours else Entry(),
                ),
            )
        )
    head = ("test text", "size, paper", "size, ours", "test text alone, ours")
    return Grid(
        "Table 1. Vocabulary size and out-of-vocabulary (OOV) rate, for a model trained on "
        "news 2007",
        (*head, "OOV, paper", "OOV, ours", "words, ours"),
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
        words = (_words(found, (train, test), pairs) for test in tests)
        lines = [Line("words scored", (Entry("ours"), *words))]
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
    return Grid(title, ("model", "", *map(spoken, tests)), tuple(parts), notes(found))


SHORT = {
    "news-2007": "news 2007, unseen",
    "news-2008": "",
    "news-2011": "",
    "wiki": "",
    "books": "",
}
"""The texts of the README's table, and what they are called there."""


def readme_grid(near: Found, far: Found) -> Grid:
    """One training text, five test texts, online weights, and the paper's unbounded cache."""
    pairs = [("news-2007", test) for test in SHORT]
    found = Found("", {p: r for p, r in (near.cells | far.cells).items() if p in pairs})
    theirs, ours = {**paper.TABLE2, **paper.TABLE3}, numbers(found, "perplexity")
    lines = [Line("words scored", tuple(_words(found, pair, pairs) for pair in pairs))]
    for row, title in TITLES.items():
        if any(row in cell for cell in ours.values()):
            lines.append(Line(title, tuple(_perplexity(ours.get(p, {}), row) for p in pairs)))
    changes = (change(theirs[pair]["unbounded"], theirs[pair]["static"]) for pair in pairs)
    entries = tuple(Entry(f"({each})") for each in changes)
    lines.append(Line("the paper’s unbounded cache, on its texts", entries))
    head = ("", *(title or spoken(test) for test, title in SHORT.items()))
    return Grid("", head, (Part("", tuple(lines)),), notes(found))


def seconds_grid(found: Found) -> Grid:
    """Table 4: seconds for 10 M words, and in brackets how many times those of static."""
    ours = {
        pair: {name: value * paper.TOKENS for name, value in cell.items()}
        for pair, cell in numbers(found, "seconds_per_token").items()
    }
    timed = [*paper.TABLE4.values(), *ours.values()]
    rows = [row for row in TITLES if any(row in cell for cell in timed)]
    lines = [
        Line(spoken(pair[1]), (Entry(whose), *(_seconds(values.get(pair, {}), r) for r in rows)))
        for pair in _pairs(paper.TABLE4, found.cells)
        for whose, values in ((PAPER, paper.TABLE4), ("ours", ours))
    ]
    machines = {str(result.get("machine", "unknown")) for result in found.cells.values()}
    measured = (
        f"Measured on one core of {listed(machines)}, and scaled to {paper.TOKENS:,} words from "
        "those actually read; the paper names no machine."
    )
    return Grid(
        f"Table 4. Seconds to read {paper.TOKENS:,} words",
        ("test text", "", *(TITLES[row] for row in rows)),
        (Part("", tuple(lines)),),
        (*((measured, TIMED) if found.cells else ()), *notes(found)),
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
    own = "recipe_static" if row.startswith("recipe") else "static"
    remark = change(value, cell[own]) if own in cell and row != own else ""
    return Entry(f"{value:,.1f}", remark, best=len(cell) > 1 and value == min(cell.values()))


def _words(found: Found, pair: Pair, pairs: Sequence[Pair]) -> Entry:
    if pair in found.cells:
        return Entry(f"{found.cells[pair]['tokens']:,}")
    return Entry() if pair in pairs else Entry("")


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
