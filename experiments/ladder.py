"""From the paper's own settings to `full`, one change a step, near and far."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.cells import usual_lines
from experiments.corpora import domain_order, spoken
from experiments.reading import Mixing
from experiments.results import find_results, notes, numbers
from unbounded.evaluation.tables import Entry, Grid, Line, Part, minus

COMPARED = (
    "The first line is the paper’s recipe: an LSTM trained without dropout, FAISS’s IVFPQ of 4,096 "
    "lists with 8 probes, 1,024 neighbors, states as they are, a Gaussian of sharpness 1 whose "
    "bandwidth is the distance to the last neighbor, and one fixed weight for the cache, fitted on "
    "a held-out part of the training domain. Each further line changes one thing and keeps all "
    "above it; the last is all together. In brackets the change from the line before."
)


@dataclass(frozen=True)
class Step:
    """What is changed, which line measures it, whether its weights are fixed, and the network."""

    title: str
    line: str
    key: str = "perplexity"
    training: str = "ours"


_FIXED = "fixed_perplexity"

STEPS = (
    Step("the paper’s settings", "paper", _FIXED, training="paper"),
    Step("network trained with dropout, at half the rate", "paper", _FIXED),
    Step("our index in the place of IVFPQ", "native", _FIXED),
    Step("weights learned as it reads", "native"),
    Step("states scaled to length one", "unit"),
    Step("a family of sharper kernels, whose trust is learned", "family"),
    Step("more neighbors from half a million entries on", "unbounded"),
    Step("+ unigram", "+ unigram"),
    Step("+ caches of the last 128 and 1,024", "+ windows"),
    Step("+ n-grams of the text and the training text", "+ ngrams"),
    Step("+ output layer that goes on training", "+ dynamic_head"),
    Step("weights that depend on the state: all together", "full"),
)

BESIDE = (
    Step("beside: the network alone, by the paper’s words", "static", _FIXED, training="paper"),
    Step("beside: the network alone", "static"),
    Step(
        "beside: the paper’s settings with its other kernel, Epanechnikov", "epanechnikov", _FIXED
    ),
)
"""What stands on no step."""


def ladder_lines() -> dict[str, Mixing]:
    """What is mixed on each step but the first, which tables 2 and 3 have."""
    lines = usual_lines(["static", "paper"])
    for cache in ("epanechnikov", "native", "unit", "family", "unbounded"):
        lines[cache] = Mixing(("static", "uniform", cache))
    mixed = lines["unbounded"].experts
    for name, more in {
        "unigram": ("unigram",),
        "windows": ("cache_128", "cache_1024"),
        "ngrams": ("ngrams",),
        "dynamic_head": ("dynamic_head",),
    }.items():
        mixed = (*mixed, *more)
        lines[f"+ {name}"] = Mixing(mixed)
    return lines | usual_lines(["full"])


def climbed(results: Path, *scales: str) -> dict[str, list[tuple[str, float]]]:
    """The perplexity on each step that has a result, by test text."""
    found: dict[str, list[tuple[str, float]]] = {}
    for step, test, value in _measured(results, STEPS, *scales):
        found.setdefault(test, []).append((step.title, value))
    return {test: found[test] for test in sorted(found, key=domain_order)}


def ladder_grid(results: Path, *scales: str) -> Grid:
    """One line a step, one column a test text."""
    every = climbed(results, *scales)
    lines = []
    for step in STEPS:
        entries = []
        for steps in every.values():
            titles = [title for title, _ in steps]
            if step.title not in titles:
                entries.append(Entry())
                continue
            place = titles.index(step.title)
            value, before = steps[place][1], steps[max(place - 1, 0)][1]
            remark = minus(f"{value / before - 1:+.1%}") if place else ""
            entries.append(Entry(f"{value:,.1f}", remark))
        lines.append(Line(step.title, tuple(entries)))
    for step in BESIDE:
        values = {test: value for _, test, value in _measured(results, [step], *scales)}
        shown = (Entry(f"{values[test]:,.1f}") if test in values else Entry() for test in every)
        lines.append(Line(step.title, tuple(shown)))
    return Grid(
        "From the paper’s settings to all together: perplexity, trained on news 2007",
        ("", *map(spoken, every)),
        (Part("", tuple(lines)),),
        notes(find_results(results, "ladder", *scales)),
    )


def _measured(
    results: Path, steps: Iterable[Step], *scales: str
) -> Iterator[tuple[Step, str, float]]:
    ours = find_results(results, "ladder", *scales)
    recipes = [find_results(results, t, *scales, training="paper") for t in ("table2", "table3")]
    for step in steps:
        for found in recipes if step.training == "paper" else [ours]:
            for pair, rows in numbers(found, step.key).items():
                # Of the same words as the other steps, whatever the scale.
                same = found.cells[pair]["tokens"] == ours.cells.get(pair, {}).get("tokens")
                if same and step.line in rows:
                    yield step, pair[1], rows[step.line]
