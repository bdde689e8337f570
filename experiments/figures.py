"""The paper's figures, drawn from results: one line a test domain, the same bytes every time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.curves import (
    Curve,
    all_sharpnesses,
    by_neighbors,
    by_sharpness,
    by_words,
)
from experiments.results import Found
from experiments.tables import spoken
from unbounded.evaluation.figures import COLORS, INK, STYLE, require_matplotlib, svg_element
from unbounded.evaluation.tables import minus
from unbounded.experts.cache import PAPER_K
from unbounded.files import write_aside

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


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, wholly or not at all."""
    import matplotlib as mpl

    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    # A date in the file would make it another one at every run.
    for suffix, settings in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
        path = stem.with_name(f"{stem.name}.{suffix}")

        def write(aside: Path, kind: str = suffix, settings: dict[str, Any] = settings) -> None:
            with mpl.rc_context(STYLE):
                figure.savefig(aside, format=kind, **settings)

        write_aside(path, write)
        written.append(path)
    return written


def inline(figure: Any, name: str, label: str) -> str:
    """A figure as an element of a page, its colors left to the style sheet."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        return svg_element(figure, name, label).replace(BOOKS, "var(--books)")


def _draw(draw: Callable[..., None], *data: Any) -> Any:
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
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
