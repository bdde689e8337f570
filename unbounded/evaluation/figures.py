"""Curves as pictures, drawn with matplotlib when it is there."""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unbounded.errors import MissingExtra, needing
from unbounded.evaluation.evaluation import Checkpoint
from unbounded.evaluation.rows import Row
from unbounded.files import write_atomically
from unbounded.lm import Progress

INK = "#808080"
"""Text and grid: a gray that reads on white and on black."""

COLORS = {
    "static": "#64748b",
    "unigram": "#b45309",
    "local": "#0f766e",
    "unbounded": "#2563eb",
    "full": "#be185d",
    "ngram": "#4d7c0f",
    "adapted": "#0891b2",
    "dynamic_head": "#0e7490",
    "dynamic": "#b91c1c",
    "knnlm": "#6d28d9",
    "knn": "#8b5cf6",
    "knnlm-tuned": "#a21caf",
    "tuned": "#c026d3",
    "ngrams": "#a16207",
    "cache_128": "#15803d",
    "cache_1024": "#0d9488",
    "uniform": "#b8c0cc",
    "spelling": "#a3a8b3",
}
"""One color a row and a same-named expert; on a page its style sheet has the last word."""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "unbounded",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "savefig.transparent": True,
}


def require_matplotlib() -> None:
    """Fail now rather than after an hour of reading."""
    with needing("matplotlib, which draws the curves,", "report"):
        import matplotlib.figure  # noqa: F401


@contextmanager
def drawing(width: float, height: float, **style: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, in inches, as all of ours look."""
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, **style}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots()


def perplexity_svg(checkpoints: Sequence[Checkpoint], rows: Sequence[Row], label: str) -> str:
    """Each row's perplexity against words read: of late, and so far (faint)."""
    with drawing(6.4, 3.8) as (figure, axes):
        words = [checkpoint.tokens for checkpoint in checkpoints]
        marker = "o" if len(words) < 3 else ""
        for row in rows:
            points = [checkpoint.points[row.name] for checkpoint in checkpoints]
            so_far = [_finite(point.perplexity) for point in points]
            recent = [_finite(point.recent_perplexity) for point in points]
            axes.plot(words, so_far, color=COLORS[row.name], alpha=0.55, linewidth=1)
            axes.plot(words, recent, color=COLORS[row.name], marker=marker)
        axes.set(ylabel="perplexity")
        _ratio_scale(axes)
        _count_words(axes, words)
        return svg_element(figure, "perplexity", label)


def weights_svg(checkpoints: Sequence[Checkpoint], row: Row, label: str) -> str:
    """How a row's weights moved: the share of each expert, stacked, against words read."""
    with drawing(6.4, 3.8, **{"axes.grid": False}) as (figure, axes):
        words = [checkpoint.tokens for checkpoint in checkpoints]
        weights = [checkpoint.points[row.name].weights for checkpoint in checkpoints]
        if len(words) == 1:  # A single point has no area.
            words, weights = [(words[0] + 1) // 2, *words], weights * 2
        axes.stackplot(words, *zip(*weights, strict=True), colors=[COLORS[n] for n in row.experts])
        axes.set(ylabel="weight", ylim=(0, 1))
        axes.yaxis.set_major_formatter("{x:.0%}")
        _count_words(axes, words)
        return svg_element(figure, "weights", label)


def draw_training(curve: Sequence[Progress], path: Path) -> bool:
    """Draw perplexity against epochs; False if matplotlib is not installed."""
    try:
        require_matplotlib()
    except MissingExtra:
        return False
    from matplotlib.ticker import MaxNLocator

    with drawing(6.4, 3.8) as (figure, axes):
        epochs = [line.epoch for line in curve]
        for name, color, perplexities in (
            ("training", COLORS["static"], [line.train_perplexity for line in curve]),
            ("validation", COLORS["unbounded"], [line.valid_perplexity for line in curve]),
        ):
            axes.plot(epochs, list(map(_finite, perplexities)), "o-", color=color, label=name)
        axes.set(xlabel="epoch", ylabel="perplexity")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _ratio_scale(axes)
        axes.legend(frameon=False)
        write_figure(figure, path)
    return True


def write_figure(figure: Any, path: Path) -> Path:
    """Write a figure as its suffix says, wholly or not at all; the same bytes every time."""
    import matplotlib as mpl

    # A date in the file would make it another one at every run.
    more: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 160}
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as aside, mpl.rc_context(STYLE):
        figure.savefig(aside, format=path.suffix[1:], **more)
    return path


def _finite(value: float | None) -> float:
    """Leave a gap where there is nothing to draw."""
    return value if value is not None and math.isfinite(value) else math.nan


def _ratio_scale(axes: Any) -> None:
    """A logarithmic axis with plain numbers, if the values spread enough for one."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axes.dataLim.intervaly
    if high > 2 * low > 0:
        wide = high > 50 * low
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1.0,) if wide else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
        )
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:,.0f}" if high > 10 else "{x:,.1f}")


def _count_words(axes: Any, words: Sequence[int]) -> None:
    """A logarithmic axis of words, from the first point to the last."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    alone = 1.5 if len(words) == 1 else 1.0
    axes.set(xlabel="words read", xlim=(words[0] / alone, words[-1] * alone))
    few = (1.0, 2.0, 5.0) if words[-1] < 100 * words[0] else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=few))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter(NullFormatter())


def svg_element(figure: Any, name: str, label: str) -> str:
    """The picture as an element of a page, its ids its own, its colors left to the style sheet."""
    from html import escape

    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", drawn, flags=re.DOTALL)
    view = re.search(r'viewBox="[^"]*"', drawn)
    assert view is not None
    head = f'<svg {view[0]} role="img" aria-label="{escape(label)}">'
    drawn = re.sub(r"<svg.*?>", lambda _: head, drawn, count=1, flags=re.DOTALL)
    drawn = re.sub(r'( id="| xlink:href="#|url\(#)', rf"\g<1>{name}-", drawn)
    for of, color in COLORS.items():
        drawn = drawn.replace(color, f"var(--{of})")
    return drawn.replace(INK, "currentColor")
