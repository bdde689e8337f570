"""The paper's figures, from results: what they show in numbers, and drawn, a line a test domain."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.config import SCALES
from experiments.corpora import spoken
from experiments.results import Found
from unbounded.evaluation.figures import COLORS, INK, STYLE, drawing, svg_element
from unbounded.evaluation.tables import minus
from unbounded.experts.cache import PAPER_K

TRAINED_ON = "news-2007"
"""The figures are of the model trained here, as the paper's are."""

DOMAINS = ("news-2008", "commentary", "web", "wiki", "books")
"""One line each, in the order of table 4."""

BOOKS = "#7c3aed"
"""The one color that no row of a report has; a page has its own for the dark."""

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
    a logarithmic axis, and never over words long past. A domain's curve is from the first of
    these results that has it; only those of the best scale count, so that no figure mixes.
    """
    scale = best_scale(found)
    curves: dict[str, Curve] = {}
    for one in found:
        for domain, result in _drawn(one):
            curve = result.get("curve", {})
            if one.scale == scale and {"unigram", "unbounded"} <= curve.keys():
                # What the weights were fitted on was read too, before the first word scored.
                curves.setdefault(domain, _latter_halves(domain, curve, result.get("fitted_on", 0)))
    return [curves[domain] for domain in DOMAINS if domain in curves]


def best_scale(found: Sequence[Found]) -> str:
    """The scale nearest to the paper's that has a result; empty if none has.

    >>> best_scale([Found("a", "paper", {}), Found("b", "small", {("x", "y"): {}})])
    'small'
    """
    return max((one.scale for one in found if one.cells), key=SCALES.index, default="")


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


def draw_kernels(found: Found) -> Any:
    """Figure 1's companion: change of perplexity against the kernel's sharpness."""
    gaussian = by_sharpness(found, "gaussian")
    if not gaussian:
        return None
    return _draw(_kernels, gaussian, by_sharpness(found, "epanechnikov"), all_sharpnesses(found))


def draw_words(found: Sequence[Found]) -> Any:
    """Figure 2: entropy difference against words read; None without results."""
    curves = by_words(found)
    return _draw(_words, curves) if curves else None


def inline(figure: Any, name: str, label: str) -> str:
    """A figure as an element of a page, its colors left to the style sheet."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        return svg_element(figure, name, label).replace(BOOKS, "var(--books)")


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


def _kernels(
    axes: Any, gaussian: Sequence[Curve], epanechnikov: Sequence[Curve], every: dict[str, float]
) -> None:
    _lines(axes, gaussian)
    for curve in epanechnikov:
        color, marker = LOOKS[curve.domain]
        axes.plot(curve.x, curve.y, "--", color=color, marker=marker, markerfacecolor="none")
    _powers_of_two(axes, [x for curve in (*gaussian, *epanechnikov) for x in curve.x])
    if every:
        ticks = axes.get_xticks()
        beside = 2 * ticks[-1]
        for domain, value in every.items():
            color, marker = LOOKS[domain]
            axes.plot([beside], [value], color=color, marker=marker, linestyle="")
        axes.set_xticks([*ticks, beside], [*(f"{tick:g}" for tick in ticks), "all\nmixed"])
    axes.yaxis.set_major_formatter(lambda value, place: minus(f"{value:+.0%}") if value else "0%")
    axes.set(
        xlabel="sharpness of the kernel (solid: Gaussian, dashed: Epanechnikov)",
        ylabel="change of perplexity over\nstatic + unigram",
    )


def _words(axes: Any, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    _lines(axes, curves, markevery=[-1])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set(xlabel="words read", ylabel=ENTROPY)


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
