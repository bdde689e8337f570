"""The cells of an experiment spread over an engine: models first, then every cell by itself."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.cells import Cell, model_for
from experiments.corpora import Corpora
from experiments.experiments import Experiment
from experiments.kinds import run_one, silent
from experiments.tasks import spread_out
from unbounded.presets import set_threads

Place = tuple[Path, Path, int]
"""The folder of the corpora, the working folder, and threads of one piece of work; the folders are
the same on every node."""


def spread_cells(
    experiment: Experiment, cells: Sequence[Cell], place: Place, engine: str
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Each cell and its result, as soon as it is there."""
    if not cells:
        return
    corpora, cores = _corpora(experiment, place), float(place[2])
    # Texts are laid down here, once: two nodes must not write the same.
    for domain in sorted({name for cell in cells for name in (cell.train, cell.test)}):
        corpora.text(domain, "test")
    models = sorted({(cell.train, cell.units) for cell in cells})
    training = [partial(_train, experiment, *wanted, place) for wanted in models]
    for _ in spread_out(engine, training, cores=cores):
        pass
    work = [partial(_cell, experiment, cell, place) for cell in cells]
    for number, result in spread_out(engine, work, cores=cores):
        yield cells[number], result


def _corpora(experiment: Experiment, place: Place) -> Corpora:
    return Corpora(place[0], place[1], train_tokens=experiment.training.tokens)


def _train(experiment: Experiment, domain: str, units: int, place: Place) -> None:
    """On a node: train a model, unless it is there."""
    set_threads(place[2])
    corpora = _corpora(experiment, place)
    model_for(domain, units, corpora, place[1], experiment.training, lambda at, total: None)


def _cell(experiment: Experiment, cell: Cell, place: Place) -> dict[str, Any]:
    """On a node: read a cell's text."""
    set_threads(place[2])
    corpora = _corpora(experiment, place)
    scale = experiment.training
    model = model_for(cell.train, cell.units, corpora, place[1], scale, lambda at, total: None)
    return run_one(experiment, cell, model, corpora, silent)
