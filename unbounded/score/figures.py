"""Curves as pictures, drawn with matplotlib when it is there."""

from collections.abc import Sequence
from pathlib import Path

from unbounded.files import write_aside
from unbounded.lm import Progress


def draw_training(curve: Sequence[Progress], path: Path) -> bool:
    """Draw perplexity against epochs; False if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    epochs = [line.epoch for line in curve]
    axes.plot(epochs, [line.train_perplexity for line in curve], "o-", label="training")
    axes.plot(epochs, [line.valid_perplexity for line in curve], "o-", label="validation")
    axes.set(xlabel="epoch", ylabel="perplexity", yscale="log")
    axes.set_xticks(epochs)
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    write_aside(path, lambda aside: figure.savefig(aside, format=path.suffix[1:]))
    return True
