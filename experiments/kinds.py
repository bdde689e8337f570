"""One cell of an experiment of any kind."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from experiments.ablation import run_ablation
from experiments.cells import Cell, run_cell
from experiments.compressors import run_compressors
from experiments.corpora import Corpora
from experiments.experiments import Experiment
from experiments.neighbors import run_neighbors
from experiments.vocabulary import run_vocabulary
from unbounded.lm import Pretrained

Meters = Callable[[str, int], AbstractContextManager[Callable[[int, str], None]]]
"""Given a name and how many words there are, a context that hears how far it is."""


@contextmanager
def silent(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A meter that tells nobody."""
    yield lambda done, text: None


def run_one(
    experiment: Experiment, cell: Cell, model: Pretrained, corpora: Corpora, meters: Meters
) -> dict[str, Any]:
    """Run it; what comes out."""
    match experiment.kind:
        case "vocabulary":
            return run_vocabulary(cell, model, corpora)
        case "neighbors":
            with meters(f"{cell.train} → {cell.test}", cell.tokens) as show:
                return run_neighbors(cell, model, corpora, show)
        case "compressors":
            with meters(f"{cell.train} → {cell.test}", cell.tokens) as show:
                tokens = experiment.training.tokens
                return run_compressors(cell, model, corpora, tokens, lambda total: show)
        case "ablation":
            with meters(f"{cell.train} → {cell.test}", cell.tokens) as show:
                return run_ablation(cell, model, corpora, lambda total: show)
        case _:
            with meters(f"{cell.train} → {cell.test}", cell.tokens) as show:
                return run_cell(cell, model, corpora, lambda total: show)
