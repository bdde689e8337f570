"""Run an experiment's cells that have no result yet, one after another, keeping each at once."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from experiments.cells import Cell, model_for
from experiments.corpora import Corpora
from experiments.experiments import Experiment
from experiments.kinds import Meters as Meters
from experiments.kinds import run_one
from experiments.results import append_result, read_results
from experiments.spreading import Place, spread_cells
from unbounded.lm import Pretrained, Progress


def run_experiment(
    experiment: Experiment, corpora_folder: Path, work: Path, results: Path, meters: Meters
) -> Iterator[dict[str, Any]]:
    """Yield each cell's result as it is there, old or new; finished cells are not run again."""
    corpora = Corpora(corpora_folder, work, train_tokens=experiment.training.tokens)
    models: dict[tuple[str, int], Pretrained] = {}
    done = {_key(result): result for result in read_results(results)}
    for cell in experiment.cells:
        key = _key({"cell": asdict(cell), "training": asdict(experiment.training)})
        if key not in done:
            wanted = cell.train, cell.units
            if wanted not in models:
                models[wanted] = _model(cell, corpora, work, experiment, meters)
            result = run_one(experiment, cell, models[wanted], corpora, meters)
            done[key] = _kept(result, experiment, results)
        yield done[key]


def run_spread(
    experiment: Experiment, place: Place, results: Path, engine: str
) -> Iterator[dict[str, Any]]:
    """The same with the cells spread over an engine, in the order in which they are done."""
    done = {_key(result): result for result in read_results(results)}
    keys = {
        cell: _key({"cell": asdict(cell), "training": asdict(experiment.training)})
        for cell in experiment.cells
    }
    yield from (done[key] for key in keys.values() if key in done)
    left = [cell for cell, key in keys.items() if key not in done]
    for _, result in spread_cells(experiment, left, place, engine):
        # How fast it was says little: others may have run beside it.
        yield _kept({**result, "spread": True}, experiment, results)


def _kept(result: dict[str, Any], experiment: Experiment, results: Path) -> dict[str, Any]:
    """A result, on disk."""
    result |= {"experiment": experiment.name, "training": asdict(experiment.training)}
    append_result(results, result)
    return result


def _model(
    cell: Cell, corpora: Corpora, work: Path, experiment: Experiment, meters: Meters
) -> Pretrained:
    total = experiment.training.tokens * experiment.training.epochs
    with meters(f"training on {cell.train}", total) as show:

        def hear(progress: Progress, total: int) -> None:
            show(progress.words, f"perplexity {progress.train_perplexity:,.1f}")

        return model_for(cell.train, cell.units, corpora, work, experiment.training, hear)


def _key(result: dict[str, Any]) -> str:
    """What makes two cells the same: their settings and how their model was trained.

    Settings left at their defaults are not compared: older results do not know newer settings.
    """
    usual = {field.name: field.default for field in fields(Cell)}
    cell = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in result["cell"].items()
    }
    cell = {name: value for name, value in cell.items() if value != usual[name]}
    return repr((sorted(cell.items()), sorted(result.get("training", {}).items())))
