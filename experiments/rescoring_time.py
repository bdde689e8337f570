"""What it takes to rescore a list of 100 hypotheses of 20 words.

python -m experiments.rescoring_time --model FOLDER --text FILE
"""

import json
import random
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.results import circumstances
from unbounded.cli.main import run
from unbounded.corpus import Reader
from unbounded.integrations.kenlm_scorer import Scorer
from unbounded.integrations.nbest import log10_probs
from unbounded.lm import load_model

SAID = [
    "the",
    "commission",
    "has",
    "decided",
    "today",
    "that",
    "the",
    "house",
    "must",
    "approve",
    "a",
    "new",
    "report",
    "on",
    "the",
    "fishing",
    "policy",
    "of",
    "the",
    "union",
]
OTHERS = {
    1: ["commissions"],
    2: ["had"],
    5: ["the", "than"],
    8: ["may"],
    11: ["knew", "few"],
    14: ["fish", "fishery"],
    16: ["zorble"],
    19: ["onion"],
}
"""By place, what else a recognizer might have heard."""


def hypotheses(count: int = 100, seed: int = 0) -> list[str]:
    """Different sentences of 20 words with up to three words heard otherwise."""
    draw, found = random.Random(seed), set[str]()
    while len(found) < count:
        words = list(SAID)
        for place in draw.sample(sorted(OTHERS), draw.randint(0, 3)):
            words[place] = draw.choice(OTHERS[place])
        found.add(" ".join(words))
    return sorted(found)


def main(
    model: Annotated[Path, typer.Option(metavar="FOLDER", help="A model.")],
    text: Annotated[Path, typer.Option(metavar="FILE", help="What to have read before.")],
    lines: Annotated[int, typer.Option(min=1, help="Lines of it.")] = 400,
    beside: Annotated[str, typer.Option(help="What else ran on the machine.")] = "nothing",
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
) -> None:
    """Take the least of seven times, on one thread, of the network alone and of all experts."""
    from unbounded.presets import set_threads

    set_threads(1)
    trained, texts = load_model(model), hypotheses()
    result: dict[str, Any] = {"hypotheses": len(texts), "words": len(SAID), "beside": beside}
    for preset in ("static", "full"):
        scorer = Scorer(trained, preset=preset)
        for line in islice(Reader([str(text)]), lines):
            scorer.read(line.text)
        wall, processor = [], []
        for _ in range(7):
            began, used = time.perf_counter(), time.process_time()
            log10_probs(scorer, texts)
            wall.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
        result[preset] = {
            "milliseconds": round(1000 * min(wall), 1),
            "processor_milliseconds": round(1000 * min(processor), 1),
        }
    target = root / "experiments" / "results" / "rescoring-time.json"
    result |= circumstances(root.absolute())
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    typer.echo(json.dumps(result))


if __name__ == "__main__":
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    commands.command()(main)
    run(commands, "python -m experiments.rescoring_time")
