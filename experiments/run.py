"""Run the cells that have no result yet, side by side, keeping each as soon as it is there."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.ablation import read_ablation
from experiments.cells import count_vocabulary, model_for, read_cell, usual_lines
from experiments.config import Cell, Experiment
from experiments.corpora import Corpora
from experiments.instead import read_instead
from experiments.ladder import ladder_lines
from experiments.neighbors import read_neighbors
from experiments.results import EDITION, append_result, circumstances, read_results
from unbounded.lm import Pretrained
from unbounded.presets import set_threads

SMALL = 10_000
"""Words at least of each text that is read at the small scale; no more are laid down."""


@dataclass(frozen=True)
class Place:
    """Where experiments run: the folders of texts, of work under way and of results."""

    corpora: Path
    work: Path
    results: Path

    def texts(self, experiment: Experiment) -> Corpora:
        """The prepared texts."""
        tokens = experiment.training.tokens
        few = {"valid_tokens": SMALL, "test_tokens": SMALL} if experiment.scale == "small" else {}
        return Corpora(self.corpora, self.work, train_tokens=tokens, **few)


@dataclass(frozen=True)
class Task:
    """A cell of an experiment."""

    experiment: Experiment
    cell: Cell
    place: Place

    @property
    def results(self) -> Path:
        """Where its result goes."""
        return self.place.results / f"{self.experiment.name}-{self.experiment.scale}.jsonl"

    @property
    def result(self) -> dict[str, Any] | None:
        """What it came to, if it was run with this edition; the paper's recipe has no editions."""
        asked = {"cell": _json(self.cell), "training": asdict(self.experiment.training)}
        for found in read_results(self.results):
            same = {key: found.get(key) for key in asked} == asked
            if same and (self.cell.training == "paper" or found.get("edition") == EDITION):
                return found
        return None


def run_all(
    experiments: Sequence[Experiment], place: Place, jobs: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield each cell's result as it is there, old or new; finished cells are not run again."""
    left = []
    for task in (Task(one, cell, place) for one in experiments for cell in one.cells):
        if (old := task.result) is None:
            left.append(task)
        else:
            yield old
    # Texts are laid down here, once: two processes must not write the same.
    for task in left:
        for domain in (task.cell.train, task.cell.test):
            place.texts(task.experiment).text(domain, "test")
    networks = {(task.cell.train, task.cell.training): task for task in left}
    for _ in side_by_side(_train, list(networks.values()), jobs):
        pass
    yield from side_by_side(run_task, left, jobs)


def side_by_side(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int) -> Iterator[Any]:
    """What each task gives, as soon as it is there; so many processes, each of one thread.

    Where one fails the others go on, and the failure is raised at the end: a run of days does not
    end by one cell.
    """
    if jobs == 1:
        set_threads(1)
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), set_threads, (1,)) as pool:
        failed = None
        try:
            for done in as_completed([pool.submit(work, task) for task in tasks]):
                if (error := done.exception()) is None:
                    yield done.result()
                else:
                    failed = failed or error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if failed is not None:
        raise failed


def run_task(task: Task) -> dict[str, Any]:
    """Run a cell, or go on with it, and keep its result; only then its checkpoint is dropped."""
    cell, experiment = task.cell, task.experiment
    named = f"{experiment.name}-{cell.train}-{cell.test}-{cell.tokens}-{cell.training}-{EDITION}"
    kept = task.place.work / "cells" / f"{named}.npz"
    with _alone(kept.with_suffix(".lock")):
        if (old := task.result) is not None:
            return old  # Another process, that nobody waited for any more, had been at it.
        # As the code was when it was read in, or nearly: others may commit meanwhile.
        now = circumstances(task.place.results.parent)
        result = {
            "commit": now["commit"],
            "changed": now["changed"],
            "cell": _json(cell),
            **_read(task, kept),
            "experiment": experiment.name,
            "training": asdict(experiment.training),
        }
        append_result(task.results, result)
        kept.unlink(missing_ok=True)
    return result


def _read(task: Task, kept: Path) -> dict[str, Any]:
    """What comes out of a cell, of whatever kind."""
    cell, experiment = task.cell, task.experiment
    texts, model = task.place.texts(experiment), _model(task)
    match experiment.kind:
        case "vocabulary":
            return count_vocabulary(cell, model, texts)
        case "neighbors":
            return read_neighbors(cell, model, texts, kept)
        case "ablation":
            return read_ablation(cell, model, texts, kept)
        case "ladder":
            return read_cell(cell, model, texts, kept, ladder_lines())
        case "instead":
            return read_instead(cell, model, texts, kept)
    return read_cell(cell, model, texts, kept, usual_lines(cell.rows))


def _train(task: Task) -> None:
    _model(task)


def _model(task: Task) -> Pretrained:
    """The network of a cell; trained, unless it is there."""
    texts, work = task.place.texts(task.experiment), task.place.work
    training = task.experiment.training
    return model_for(task.cell.train, task.cell.training, texts, work, training)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process is at the same; the lock goes with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _json(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "rows": list(cell.rows)}
