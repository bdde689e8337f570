"""Figures that the paper has not: how it goes as it reads, the ladder, what parts are worth."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.ablation import PARTS, full_perplexity, microseconds
from experiments.corpora import spoken
from experiments.figures import mark_logarithms
from experiments.results import Found, numbers
from experiments.tables import TITLES
from unbounded.evaluation.figures import COLORS, INK, drawing
from unbounded.evaluation.tables import minus

LOOKS = {
    "static": (COLORS["static"], ":", "s"),
    "unigram": (COLORS["unigram"], "-.", "^"),
    "local": (COLORS["local"], (0, (6, 2)), "v"),
    "unbounded": (COLORS["unbounded"], "--", "o"),
    "paper": ("#7c3aed", (0, (1, 1)), "P"),
    "recipe": ("#7c3aed", (0, (3, 1, 1, 1)), "X"),
    "full": (COLORS["full"], "-", "D"),
}
"""Color, dashes and marker of a row: told apart without color too."""

NEAR, FAR = "news-2009", "wiki"
"""The texts that stand for near the training text and far from it."""

TIMED = ("news-2008", FAR)
"""The same of table 4, which has no other news."""


def reading_curves(result: Mapping[str, Any]) -> dict[str, tuple[list[int], list[float]]]:
    """Each row's perplexity against words read, over stretches that grow with the text."""
    curve = result.get("curve", {})
    ends = curve.get("tokens", [])
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row in TITLES:
        if row not in curve:
            continue
        x, y, since, nats, begun = [], [], 0, 0.0, 0
        for place, end in enumerate(ends):
            nats += (end - (ends[place - 1] if place else 0)) * math.log(curve[row][place])
            if end >= 1.25 * begun or place == len(ends) - 1:
                x.append(end)
                y.append(math.exp(nats / (end - since)))
                begun, since, nats = end, end, 0.0
        found[row] = x, y
    return found


def draw_reading(result: Mapping[str, Any]) -> Any:
    """Perplexity as it reads, every row, both axes logarithmic."""
    from matplotlib.ticker import EngFormatter, ScalarFormatter

    curves = reading_curves(result)
    drawn: list[tuple[float, Any, str]] = []
    with drawing(7.2, 4.0) as (figure, axes):
        for row, (x, y) in curves.items():
            color, dashes, marker = LOOKS[row]
            name = TITLES[row].removeprefix("static ").replace(", ", ",\n")
            look = {"color": color, "linestyle": dashes, "marker": marker, "markevery": [-1]}
            drawn.append((y[-1], *axes.plot(x, y, **look), name))
        order = sorted(drawn, key=lambda each: -each[0])
        axes.legend(
            [line for _, line, _ in order],
            [name for _, _, name in order],
            **{"frameon": False, "handlelength": 3.5},
            **{"loc": "center left", "bbox_to_anchor": (1.0, 0.5)},
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        mark_logarithms(axes.xaxis, EngFormatter(sep=""))
        mark_logarithms(axes.yaxis, ScalarFormatter(), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
        axes.set(xlabel="words read", ylabel="perplexity of the latest words")
    return figure


def draw_ladder(climbed: Mapping[str, Sequence[tuple[str, float]]]) -> Any:
    """A line a test text: perplexity, over that of the paper's settings, from step to step."""
    titles = list(dict.fromkeys(title for steps in climbed.values() for title, _ in steps))
    with drawing(7.2, 0.34 * len(titles) + 0.8, **{"axes.grid.axis": "x"}) as (figure, axes):
        for (test, steps), (color, dashes, marker) in zip(
            climbed.items(), (LOOKS["unbounded"], LOOKS["full"]), strict=False
        ):
            x = [100 * (value / steps[0][1] - 1) for _, value in steps]
            y = [titles.index(title) for title, _ in steps]
            axes.plot(x, y, color=color, linestyle=dashes, marker=marker, label=spoken(test))
        axes.set_yticks(range(len(titles)), titles)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda value, place: minus(f"{value:.0f}%"))
        axes.set(xlabel="perplexity over that of the paper’s settings")
        axes.legend(frameon=False, loc="upper left")
    return figure


def draw_parts(found: Found) -> Any:
    """What each part costs against what it is worth: a bar to each side."""
    cells = list(found.cells.values())
    parts = [part for part in PARTS if all(part in cell["without"] for cell in cells)]
    worth = [
        sum(cell["without"][part] / full_perplexity(cell) - 1 for cell in cells) / len(cells)
        for part in parts
    ]
    cost = [sum(microseconds(cell, part) for cell in cells) / len(cells) for part in parts]
    with drawing(7.2, 0.36 * len(parts) + 0.9, **{"axes.grid": False}) as (figure, axes):
        widest, dearest = max(*worth, 1e-9), max(*cost, 1e-9)
        for place, (gain, spent) in enumerate(zip(worth, cost, strict=True)):
            axes.barh(place, max(gain, 0) / widest, color=COLORS["full"], height=0.6)
            axes.barh(
                place, -spent / dearest, color="none", edgecolor=INK, hatch="////", height=0.6
            )
            said = {"va": "center", "fontsize": 9}
            axes.text(max(gain, 0) / widest + 0.02, place, minus(f"{gain:+.1%}"), **said)
            label = f"{spent:,.1f} µs" if PARTS[parts[place]] else "–"
            axes.text(-spent / dearest - 0.02, place, label, ha="right", **said)
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(parts)), parts)
        axes.set_xticks([])
        axes.set_xlim(-1.4, 1.3)
        axes.invert_yaxis()
        axes.set(xlabel="cost: time a word (hatched)        worth: perplexity without it (full)")
        axes.spines["bottom"].set_visible(False)
    return figure


def draw_costs(found: Found) -> Any:
    """Perplexity against microseconds a word, near and far: a marker a row, a line a text."""
    from matplotlib.ticker import ScalarFormatter

    perplexity, seconds = numbers(found, "perplexity"), numbers(found, "seconds_per_token")
    with drawing(7.2, 4.0) as (figure, axes):
        for pair, rows in sorted(perplexity.items()):
            test, times = pair[1], seconds[pair]
            if test not in TIMED:
                continue
            known = sorted((1e6 * times[row], rows[row], row) for row in rows if row in LOOKS)
            axes.plot([x for x, _, _ in known], [y for _, y, _ in known], color=INK, linewidth=0.8)
            for x, y, row in known:
                color, _, marker = LOOKS[row]
                axes.plot([x], [y], color=color, marker=marker, markersize=7, linestyle="")
            x, y, _ = known[-1]
            axes.annotate(spoken(test), (x, y), (8, 0), textcoords="offset points", va="center")
        for row in TITLES:
            if any(row in rows for rows in perplexity.values()):
                color, _, marker = LOOKS[row]
                axes.plot([], [], color=color, marker=marker, linestyle="", label=TITLES[row])
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            mark_logarithms(axis, ScalarFormatter())
        axes.set(xlabel="microseconds a word, one core", ylabel="perplexity")
        axes.legend(
            frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2
        )
    return figure
