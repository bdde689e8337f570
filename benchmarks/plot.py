"""A plot of perplexity against time, from the figures of `read`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import STOCK, searches
from unbounded.evaluation.figures import COLORS, INK, STYLE, require_matplotlib, write_figure


def draw_searches(figures: Mapping[str, Any], path: Path) -> list[Path]:
    """Perplexity against µs a query at every mark, as SVG and PNG; low and to the left is good.

    Each line is one index of faiss with 8, 16 and 32 probes; a hollow point on the same height is
    what it costs charged with training, growth and visibility.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    marks = figures["entries"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.2 * len(marks)), layout="constrained")
        every = figure.subplots(len(marks), 1, squeeze=False)[:, 0]
        for axes, (mark, there) in zip(every, marks.items(), strict=True):
            _draw_mark(axes, int(mark), there)
    return [write_figure(figure, path.with_suffix(suffix)) for suffix in (".svg", ".png")]


def _draw_mark(axes: Any, mark: int, figures: Mapping[str, Any]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    ours, _, *others = searches(figures)
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for one in others:
        lines.setdefault(one["name"].rpartition(", ")[0], []).append(one)
    styles = zip(("unigram", "local", "dynamic", "knnlm") * 2, "sD^vsD^v", strict=True)
    for (name, points), (color, marker) in zip(sorted(lines.items()), styles, strict=False):
        _draw_line(axes, name, points, COLORS[color], marker)
    _draw_line(axes, ours["name"], [ours], COLORS["unbounded"], "o", 9)
    axes.axvline(figures["stock_search_us"], color=INK, linewidth=1, linestyle=":")
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate(
        STOCK, (figures["stock_search_us"], 1), xytext=(4, -2), va="top", rotation=270, **place
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(
        title=f"{mark:,} entries",
        xlabel="µs a query (hollow: charged with training, growth and visibility)",
        ylabel="perplexity",
    )
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_line(
    axes: Any,
    name: str,
    points: Sequence[Mapping[str, Any]],
    color: str,
    marker: str,
    size: int = 5,
) -> None:
    heights = [point["perplexity"] for point in points]
    style: dict[str, Any] = {"color": color, "marker": marker, "markersize": size}
    axes.plot([point["us"] for point in points], heights, label=name, zorder=3, **style)
    # What was written down, or the sum of its parts where older results have only those.
    charged = [p.get("charged_us") or p["us"] + p.get("filling_us", 0.0) for p in points]
    axes.plot(charged, heights, markerfacecolor="none", linestyle="", **style)
