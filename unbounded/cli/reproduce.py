"""`unbounded reproduce`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.app import CORES, Threads, app
from unbounded.console import meter, say

NAMES = ("table1", "table2", "table3", "table4", "figure1", "figure2")


@app.command()
def reproduce(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(NAMES)}, or all.")],
    corpora: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the texts.")],
    scale: Annotated[
        str, typer.Option(help="small (half an hour) or paper (many hours).")
    ] = "small",
    experiments: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the configs; results go below it.")
    ] = Path("experiments"),
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Where prepared texts and models are kept.")
    ] = Path("runs"),
    threads: Threads = CORES,
) -> None:
    """Run the paper's experiments; what is finished is kept, and not run again."""
    from unbounded.config import set_threads
    from unbounded.reproduce.experiments import load_experiment
    from unbounded.reproduce.run import run_experiment

    names = NAMES if what == "all" else (what,)
    for name in names:
        if name not in NAMES and not (experiments / f"{name}.toml").exists():
            raise typer.BadParameter(f"{name!r} is unknown; choose from {', '.join(NAMES)}, all")
    set_threads(threads)
    loaded = [load_experiment(experiments / f"{name}.toml", scale) for name in names]
    cells = sum(len(experiment.cells) for experiment in loaded)
    done = 0
    for experiment in loaded:
        results = experiments / "results" / f"{experiment.name}-{scale}.jsonl"
        for result in run_experiment(experiment, corpora, work / scale, results, _meters):
            done += 1
            cell = result["cell"]
            say(f"{done} of {cells}: {experiment.name}, {cell['train']} → {cell['test']}")


@contextmanager
def _meters(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    with meter(what, total) as show:
        yield show
