"""`python -m experiments`: the paper's tables and figures, and what we ask beside them."""

from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.main import run
from unbounded.console import say

NAMES = (
    *("table1", "table2", "table3", "table4", "figure1"),
    *("ladder", "ablation", "instead"),
)


def experiments(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WHAT]...", help=f"{', '.join(NAMES)} [default: all of them]."),
    ] = None,
    corpora: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the texts; needed unless --draw-only."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (minutes), medium (many hours) or paper (days).")
    ] = "small",
    jobs: Annotated[
        int, typer.Option(min=1, help="Cells at a time, each a process of one thread.")
    ] = 1,
    configs: Annotated[
        Path,
        typer.Option(
            "--experiments",
            metavar="DIR",
            help="Folder of the configs; results go below it, the page beside it.",
        ),
    ] = Path("experiments"),
    work: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where prepared texts, models and checkpoints are kept."),
    ] = Path("runs"),
    draw_only: Annotated[
        bool, typer.Option("--draw-only", help="Run nothing; draw what there are results of.")
    ] = False,
) -> None:
    """Run the paper's experiments, then draw its tables and figures, and a page of both.

    What is finished is kept, and not run again; what was interrupted goes on where it was. Tables,
    figures and docs/reproduce.md are drawn from all results there are, at every scale.
    """
    from experiments.config import SCALES, load_experiment
    from experiments.page import draw_all
    from experiments.run import Place, run_all
    from unbounded.evaluation.figures import require_matplotlib

    for name in names or ():
        if name not in NAMES:
            raise typer.BadParameter(f"{name!r} is unknown; choose from {', '.join(NAMES)}")
    require_matplotlib()
    if not draw_only:
        if corpora is None:
            raise typer.BadParameter("--corpora is missing; name the folder of the texts")
        loaded = [load_experiment(configs / f"{name}.toml", scale) for name in names or NAMES]
        # What is trained alike is trained once.
        same = [name for name in SCALES if SCALES[name] == SCALES[scale]][-1]
        place = Place(corpora.absolute(), (work / same).absolute(), configs / "results")
        cells = sum(len(experiment.cells) for experiment in loaded)
        for done, result in enumerate(run_all(loaded, place, jobs), 1):
            cell = result["cell"]
            say(f"{done} of {cells}: {result['experiment']}, {cell['train']} → {cell['test']}")
    for path in draw_all(configs):
        say(f"drawn: {path}")


if __name__ == "__main__":
    run(experiments, "python -m experiments")
