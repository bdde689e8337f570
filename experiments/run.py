"""Run an experiment's cells that have no result yet, here or over an engine, keeping each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from experiments.ablation import run_ablation
from experiments.cells import model_for, run_cell, run_vocabulary
from experiments.compressors import run_compressors
from experiments.config import Cell, Experiment
from experiments.corpora import Corpora
from experiments.neighbors import run_neighbors
from experiments.results import append_result, read_results
from unbounded.cluster.engine import Address
from unbounded.cluster.on_ray import connect, ray_module
from unbounded.errors import EngineError, Unavailable, UnboundedError
from unbounded.lm import Pretrained, Progress
from unbounded.presets import set_threads

Meters = Callable[[str, int], AbstractContextManager[Callable[[int, str], None]]]
"""Given a name and how many words there are, a context that hears how far it is."""

RETRIES = 3
"""How often work is begun again whose node was lost."""


@dataclass(frozen=True)
class Place:
    """Where an experiment runs: folders that every node sees, and threads of one piece of work."""

    corpora: Path
    work: Path
    threads: int = 1

    def texts(self, experiment: Experiment) -> Corpora:
        """The prepared texts."""
        return Corpora(self.corpora, self.work, train_tokens=experiment.training.tokens)


def run_experiment(
    experiment: Experiment, place: Place, results: Path, meters: Meters
) -> Iterator[dict[str, Any]]:
    """Yield each cell's result as it is there, old or new; finished cells are not run again."""
    models: dict[tuple[str, int], Pretrained] = {}
    for cell, old in _cells(experiment, results).items():
        if old is not None:
            yield old
            continue
        wanted = cell.train, cell.units
        if wanted not in models:
            models[wanted] = _model(experiment, cell, place, meters)
        yield _kept(_run(experiment, cell, models[wanted], place, meters), experiment, results)


def run_spread(
    experiment: Experiment, place: Place, results: Path, engine: str
) -> Iterator[dict[str, Any]]:
    """The same with the cells spread over an engine, in the order in which they are done."""
    cells = _cells(experiment, results)
    yield from (old for old in cells.values() if old is not None)
    left = [cell for cell, old in cells.items() if old is None]
    # Texts are laid down here, once: two nodes must not write the same.
    for domain in sorted({name for cell in left for name in (cell.train, cell.test)}):
        place.texts(experiment).text(domain, "test")
    models = {(cell.train, cell.units): cell for cell in left}
    training = [partial(_train_there, experiment, cell, place) for cell in models.values()]
    for _ in spread_out(engine, training, cores=place.threads):
        pass
    work = [partial(_run_there, experiment, cell, place) for cell in left]
    for result in spread_out(engine, work, cores=place.threads):
        # How fast it was says little: others may have run beside it.
        yield _kept({**result, "spread": True}, experiment, results)


def spread_out(
    address: str, work: Sequence[Callable[[], Any]], *, cores: float = 1
) -> Iterator[Any]:
    """What each gives, as soon as it is there, whichever is first; `cores` are those of one.

    Functions must be importable on every node. An error ends it all; what was given is given.
    """
    if not work:
        return
    connect(Address.parse(address))
    ray = ray_module()
    run = ray.remote(_call).options(num_cpus=cores, max_retries=RETRIES)
    left = [run.remote(each) for each in work]
    try:
        while left:
            (done,), left = ray.wait(left, num_returns=1)
            yield _got(ray, done)
    finally:
        for each in left:
            ray.cancel(each, force=True)


@contextmanager
def silent(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A meter that tells nobody."""
    yield lambda done, text: None


def _cells(experiment: Experiment, results: Path) -> dict[Cell, dict[str, Any] | None]:
    """Every cell with its result, if it has one."""
    done = {_key(result): result for result in read_results(results)}
    training = asdict(experiment.training)
    return {
        cell: done.get(_key({"cell": asdict(cell), "training": training}))
        for cell in experiment.cells
    }


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


def _kept(result: dict[str, Any], experiment: Experiment, results: Path) -> dict[str, Any]:
    """A result, on disk."""
    result |= {"experiment": experiment.name, "training": asdict(experiment.training)}
    append_result(results, result)
    return result


def _model(experiment: Experiment, cell: Cell, place: Place, meters: Meters) -> Pretrained:
    total = experiment.training.tokens * experiment.training.epochs
    with meters(f"training on {cell.train}", total) as show:

        def hear(progress: Progress, total: int) -> None:
            show(progress.words, f"perplexity {progress.train_perplexity:,.1f}")

        texts, scale = place.texts(experiment), experiment.training
        return model_for(cell.train, cell.units, texts, place.work, scale, hear)


def _run(
    experiment: Experiment, cell: Cell, model: Pretrained, place: Place, meters: Meters
) -> dict[str, Any]:
    """Run one cell, of whatever kind; what comes out."""
    corpora = place.texts(experiment)
    if experiment.kind == "vocabulary":
        return run_vocabulary(cell, model, corpora)
    with meters(f"{cell.train} → {cell.test}", cell.tokens) as show:
        match experiment.kind:
            case "neighbors":
                return run_neighbors(cell, model, corpora, show)
            case "compressors":
                tokens = experiment.training.tokens
                return run_compressors(cell, model, corpora, tokens, lambda total: show)
            case "ablation":
                return run_ablation(cell, model, corpora, lambda total: show)
        return run_cell(cell, model, corpora, lambda total: show)


def _train_there(experiment: Experiment, cell: Cell, place: Place) -> None:
    """On a node: train a model, unless it is there."""
    set_threads(place.threads)
    _model(experiment, cell, place, silent)


def _run_there(experiment: Experiment, cell: Cell, place: Place) -> dict[str, Any]:
    """On a node: read a cell's text."""
    set_threads(place.threads)
    return _run(experiment, cell, _model(experiment, cell, place, silent), place, silent)


def _call(work: Callable[[], Any]) -> Any:
    return work()


def _got(ray: Any, done: Any) -> Any:
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UnboundedError):
            raise error.cause from None
        raise EngineError(
            f"work on the engine failed ({error.cause!r}); look at the engine's logs"
        ) from error
    except ray.exceptions.RayError as error:
        raise Unavailable(
            f"work on the engine was lost {RETRIES} times ({' '.join(str(error).split())[:160]}); "
            "begin again: what is done is kept"
        ) from error
