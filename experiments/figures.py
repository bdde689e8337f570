"""The paper's figures, from results: what they show in numbers, and drawn, a line a test domain."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.corpora import spoken
from experiments.results import Found
from unbounded.evaluation.figures import COLORS, INK, drawing
from unbounded.experts.cache import PAPER_K

TRAINED_ON = "news-2007"
"""The figures are of the model trained here, as the paper's are."""

DOMAINS = ("news-2008", "commentary", "web", "wiki", "books")
"""One line each, in the order of table 4."""

BOOKS = "#7c3aed"
"""The one color that no row of a report has."""

LOOKS = {
    "news-2008": (COLORS["unbounded"], "o"),
    "commentary": (COLORS["unigram"], "s"),
    "web": (COLORS["local"], "^"),
    "wiki": (COLORS["full"], "D"),
    "books": (BOOKS, "v"),
}
"""Color and marker of a domain, so that lines can be told apart without color too."""

ENTROPY = "entropy difference with\nstatic + unigram (nats a word)"


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    domain: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def by_neighbors(found: Found) -> list[Curve]:
    """Nats a word that static + cache takes more than static + unigram, against k."""
    return _curves(found, "k ", lambda nats, unigram: nats - unigram)


def by_sharpness(found: Found, shape: str) -> list[Curve]:
    """Relative change of perplexity over static + unigram, against the kernel's sharpness."""
    return _curves(found, f"{shape} ", lambda nats, unigram: math.expm1(nats - unigram))


def all_sharpnesses(found: Found) -> dict[str, float]:
    """The same change for a mixture of every Gaussian at once, by domain."""
    return {
        domain: math.expm1(result["family"] - result["unigram"])
        for domain, result in _drawn(found)
        if "family" in result
    }


def by_words(found: Sequence[Found]) -> list[Curve]:
    """Nats a word that unbounded takes more than unigram, against words read, for figure 2.

    Each point is the mean over the latter half of all words read by then: as wide everywhere on
    a logarithmic axis, and never over words long past. A domain's curve is the longest there is.
    """
    curves: dict[str, Curve] = {}
    for one in found:
        for domain, result in _drawn(one):
            curve = result.get("curve", {})
            if {"unigram", "unbounded"} <= curve.keys():
                # What the weights were fitted on of the same text was read too, before the first
                # word scored.
                start = 0 if "fitted_in" in result else result.get("fitted_on", 0)
                drawn = _latter_halves(domain, curve, start)
                old = curves.setdefault(domain, drawn)
                curves[domain] = max(old, drawn, key=lambda each: each.x[-1])
    return [curves[domain] for domain in DOMAINS if domain in curves]


def _latter_halves(domain: str, curve: dict[str, list[Any]], start: int) -> Curve:
    bounds, sums = [start], [0.0]
    rows = zip(curve["tokens"], curve["unbounded"], curve["unigram"], strict=True)
    for tokens, unbounded, unigram in rows:
        stretch = start + tokens - bounds[-1]
        sums.append(sums[-1] + stretch * math.log(unbounded / unigram))
        bounds.append(start + tokens)
    means = []
    for end in range(1, len(bounds)):
        begin = min(bisect_left(bounds, bounds[end] / 2), end - 1)
        means.append((sums[end] - sums[begin]) / (bounds[end] - bounds[begin]))
    return Curve(domain, tuple(map(float, bounds[1:])), tuple(means))


def _curves(found: Found, prefix: str, of: Callable[[float, float], float]) -> list[Curve]:
    curves = []
    for domain, result in _drawn(found):
        points = sorted(
            (float(name.removeprefix(prefix)), of(nats, result["unigram"]))
            for name, nats in result.get("lines", {}).items()
            if name.startswith(prefix)
        )
        if points:
            curves.append(Curve(domain, *map(tuple, zip(*points, strict=True))))
    return curves


def _drawn(found: Found) -> Iterator[tuple[str, dict[str, Any]]]:
    for domain in DOMAINS:
        if (TRAINED_ON, domain) in found.cells:
            yield domain, found.cells[TRAINED_ON, domain]


def draw_neighbors(found: Found) -> Any:
    """Figure 1: entropy difference against the number of neighbors; None without results."""
    curves = by_neighbors(found)
    return _draw(_neighbors, curves) if curves else None


def draw_words(found: Sequence[Found]) -> Any:
    """Figure 2: entropy difference against words read; None without results."""
    curves = by_words(found)
    return _draw(_words, curves) if curves else None


def _draw(draw: Callable[..., None], *data: Any) -> Any:
    with drawing(7.2, 4.0) as (figure, axes):
        axes.axhline(0, color=INK, linewidth=1)
        draw(axes, *data)
    return figure


def _neighbors(axes: Any, curves: Sequence[Curve]) -> None:
    _lines(axes, curves)
    _powers_of_two(axes, [x for curve in curves for x in curve.x])
    if curves[0].x[-1] >= PAPER_K:
        axes.axvline(PAPER_K, color=INK, linewidth=1, linestyle=":")
        axes.annotate(
            "the paper’s k",
            xy=(PAPER_K, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -2),
            textcoords="offset points",
            ha="right",
            va="top",
        )
    axes.set(xlabel="number of neighbors k", ylabel=ENTROPY)


def _words(axes: Any, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import EngFormatter

    _lines(axes, curves, markevery=[-1])
    axes.set_xscale("log")
    mark_logarithms(axes.xaxis, EngFormatter(sep=""))
    axes.set(xlabel="words read", ylabel=ENTROPY)


def mark_logarithms(axis: Any, formatter: Any, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Numbers at these multiples of powers of ten, and nothing between them."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(formatter)


def _lines(axes: Any, curves: Sequence[Curve], **style: Any) -> None:
    """A line a domain, named on the right, from top to bottom as they end."""
    drawn = {}
    for curve in curves:
        color, marker = LOOKS[curve.domain]
        drawn[curve], *_ = axes.plot(curve.x, curve.y, color=color, marker=marker, **style)
    order = sorted(curves, key=lambda curve: -curve.y[-1])
    axes.legend(
        [drawn[curve] for curve in order],
        [spoken(curve.domain) for curve in order],
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )


def _powers_of_two(axes: Any, values: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    every = sorted(set(values))
    axes.set_xticks(every, [f"{value:g}" for value in every], fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
