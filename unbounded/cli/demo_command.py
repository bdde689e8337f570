"""`unbounded demo`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from unbounded.cli.main import CORES, JsonFile, Seed, Threads, app, check_targets
from unbounded.console import meter, training_meter, write_json


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the model and the pages go.")
    ] = Path("demo"),
    threads: Threads = CORES,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Show it all on built-in texts: train, read near and far, draw. Nothing to download."""
    from unbounded.demo import FAR, NEAR, TRAIN, demo_evaluation, demo_model
    from unbounded.evaluation.report import text_table, write_report
    from unbounded.presets import set_threads

    check_targets(json_file)
    set_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    with training_meter(f"training a small network on {TRAIN.title}") as show:
        model = demo_model(out / "model", seed, show)
    figures: dict[str, Any] = {}
    for place, text in (("near", NEAR), ("far", FAR)):
        with ExitStack() as stack:
            evaluation = demo_evaluation(
                model,
                text,
                progress=lambda total, s=stack: s.enter_context(meter("reading", total)),
            )
        page = out / f"{place}.html"
        write_report(evaluation, page, title=text.title)
        # The far text's figures stand at the top, in the shape that `evaluate` gives.
        figures = evaluation.to_json() | {
            "text": text.title,
            **({"near": figures} if figures else {}),
        }
        if json_file != "-":
            typer.echo(f"\n{place}: {text.title}\n{text_table(evaluation)}\nthe curves: {page}")
    if json_file is not None:
        write_json(figures, json_file)
