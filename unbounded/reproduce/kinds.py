"""One cell of an experiment of any kind."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from unbounded.lm import Pretrained
from unbounded.reproduce.ablation import run_ablation
from unbounded.reproduce.cells import Cell, run_cell
from unbounded.reproduce.compressors import run_compressors
from unbounded.reproduce.corpora import Corpora
from unbounded.reproduce.experiments import Experiment
from unbounded.reproduce.neighbors import run_neighbors
from unbounded.reproduce.vocabulary import run_vocabulary

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
