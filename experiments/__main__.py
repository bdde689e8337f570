"""`python -m experiments`: the paper's tables and figures, and what we ask beside them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.main import CORES, Threads, run
from unbounded.console import meter, say

NAMES = (
    *("table1", "table2", "table3", "table4", "figure1", "figure2"),
    *("dynamic", "ablation", "compressors"),
)


def experiments(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(NAMES)}, or all.")],
    corpora: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the texts; needed unless --draw-only."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (half an hour) or paper (many hours).")
    ] = "small",
    configs: Annotated[
        Path,
        typer.Option(
            "--experiments",
            metavar="DIR",
            help="Folder of the configs; results go below it, the page beside it.",
        ),
    ] = Path("experiments"),
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Where prepared texts and models are kept.")
    ] = Path("runs"),
    draw_only: Annotated[
        bool, typer.Option("--draw-only", help="Run nothing; draw what there are results of.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Spread the cells over ray://HOST:PORT; corpora and work are folders that every "
            "node sees [default: one after the other, here].",
        ),
    ] = None,
    threads: Threads = CORES,
) -> None:
    """Run the paper's experiments, then draw its tables and figures, and a page of both.

    What is finished is kept, and not run again. Tables, figures and docs/reproduce.md are drawn
    from all results there are, at every scale.
    """
    from experiments.config import load_experiment
    from experiments.page import draw_all
    from experiments.run import Place, run_experiment, run_spread
    from unbounded.evaluation.figures import require_matplotlib
    from unbounded.presets import set_threads

    names = NAMES if what == "all" else (what,)
    for name in names:
        if name not in NAMES and not (configs / f"{name}.toml").exists():
            raise typer.BadParameter(f"{name!r} is unknown; choose from {', '.join(NAMES)}, all")
    require_matplotlib()
    if draw_only:
        _say_drawn(draw_all(configs, configs.absolute().parent / "docs"))
        return
    if corpora is None:
        raise typer.BadParameter("--corpora is missing; name the folder of the texts")
    set_threads(threads)
    loaded = [load_experiment(configs / f"{name}.toml", scale) for name in names]
    place = Place(corpora.absolute(), (work / scale).absolute(), threads)
    cells = sum(len(experiment.cells) for experiment in loaded)
    done = 0

    def meters(what: str, total: int) -> AbstractContextManager[Callable[[int, str], None]]:
        return meter(f"{done + 1} of {cells}, {what}", total)

    for experiment in loaded:
        results = configs / "results" / f"{experiment.name}-{scale}.jsonl"
        if engine is None:
            running = run_experiment(experiment, place, results, meters)
        else:
            running = run_spread(experiment, place, results, engine)
        for result in running:
            done += 1
            cell = result["cell"]
            say(f"{done} of {cells}: {experiment.name}, {cell['train']} → {cell['test']}")
    _say_drawn(draw_all(configs, configs.absolute().parent / "docs"))


def _say_drawn(paths: Sequence[Path]) -> None:
    for path in paths:
        say(f"drawn: {path}")


if __name__ == "__main__":
    run(experiments, "python -m experiments")
