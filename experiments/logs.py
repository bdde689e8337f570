"""A log through `unbounded read - --surprise`: which lines stand out.

python -m experiments.logs /var/log/dpkg.log --model FOLDER
"""

import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from experiments.results import write_result
from unbounded.cli.main import run

BEGINNING, MOST = 300, 8
"""Lines at the beginning, where all is new, and how many of the others to keep."""


def main(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A file of lines.")],
    model: Annotated[Path, typer.Option(metavar="FOLDER", help="A model trained on other text.")],
    lines: Annotated[int, typer.Option(min=1, help="Lines of it.")] = 1_200,
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
) -> None:
    """Read a log, and write which lines surprised most."""
    with log.open(encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "unbounded", "read", f"{folder}/memory", "-", "--surprise"]
        command += ["--model", str(model), "--json", str(figures), "--threads", "1"]
        text = "".join(islice(file, lines))
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        found = json.loads(figures.read_text(encoding="utf-8"))
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    most = sorted(said[BEGINNING:], key=lambda one: -one["nats"])[:MOST]
    result = {
        "lines": len(said),
        "words": found["words"],
        "perplexity": found["perplexity"],
        "median_nats": sorted(one["nats"] for one in said)[len(said) // 2],
        "most": most,
    }
    write_result(root, "logs", result)
    typer.echo(ran.stdout.splitlines()[700])
    for one in most:
        typer.echo(json.dumps(one))


if __name__ == "__main__":
    run(main, "python -m experiments.logs")
