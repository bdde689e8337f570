"""Run an experiment's cells that have no result yet, one after another, keeping each at once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from unbounded.lm import Pretrained, Progress
from unbounded.reproduce.ablation import run_ablation
from unbounded.reproduce.cells import Cell, model_for, run_cell
from unbounded.reproduce.compressors import run_compressors
from unbounded.reproduce.corpora import Corpora
from unbounded.reproduce.experiments import Experiment
from unbounded.reproduce.neighbors import run_neighbors
from unbounded.reproduce.results import append_result, read_results
from unbounded.reproduce.vocabulary import run_vocabulary

Meters = Callable[[str, int], AbstractContextManager[Callable[[int, str], None]]]
"""Given a name and how many words there are, a context that hears how far it is."""


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
            result = _run(experiment, cell, models[wanted], corpora, meters)
            result |= {"experiment": experiment.name, "training": asdict(experiment.training)}
            append_result(results, result)
            done[key] = result
        yield done[key]


def _run(
    experiment: Experiment, cell: Cell, model: Pretrained, corpora: Corpora, meters: Meters
) -> dict[str, Any]:
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
