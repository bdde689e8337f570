"""What it takes to rescore a list of 100 hypotheses of 20 words.

python -m experiments.rescoring_time --model FOLDER --text FILE
"""

import json
import os
import random
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.results import write_result
from unbounded.cli.main import run
from unbounded.corpus import Reader
from unbounded.experts import Cache
from unbounded.integrations.kenlm_scorer import Scorer
from unbounded.integrations.nbest import log10_probs
from unbounded.lm import load_model
from unbounded.presets import set_threads

SAID = (
    "the commission has decided today that the house must approve a new "
    "report on the fishing policy of the union"
)
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

TIMES = 7
"""Lists that are timed."""

ENTRIES = (10_000, 100_000)
"""Words in the memory: of fewer than 16,384 every key is compared, of more their codes."""


def hypotheses(count: int = 100, seed: int = 0) -> list[str]:
    """Different sentences of 20 words with up to three words heard otherwise."""
    draw, found = random.Random(seed), set[str]()
    while len(found) < count:
        words = SAID.split()
        for place in draw.sample(sorted(OTHERS), draw.randint(0, 3)):
            words[place] = draw.choice(OTHERS[place])
        found.add(" ".join(words))
    return sorted(found)


def main(
    model: Annotated[Path, typer.Option(metavar="FOLDER", help="A model.")],
    text: Annotated[Path, typer.Option(metavar="FILE", help="What to have read before.")],
    beside: Annotated[str, typer.Option(help="What else ran on the machine.")] = "nothing",
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
) -> None:
    """Take the least of seven times, each of another list: the network alone, then all experts."""
    trained, lines = load_model(model), (line.text for line in Reader([str(text)]))
    result: dict[str, Any] = {"hypotheses": 100, "words": len(SAID.split()), "beside": beside}
    result["static"] = times(Scorer(trained, preset="static"))
    scorer = Scorer(trained)
    cache = scorer.online.experts["unbounded"]
    assert isinstance(cache, Cache)
    for entries in ENTRIES:
        while len(cache.datastore) < entries:
            scorer.read(next(lines))
        result[f"full_{entries}"] = times(scorer)
    typer.echo(json.dumps(write_result(root, "rescoring-time", result)))


def times(scorer: Scorer) -> dict[str, dict[str, float]]:
    """Milliseconds on one thread and on all cores, and those of the processor."""
    found = {}
    for threads in (1, os.cpu_count() or 1):
        set_threads(threads)
        wall, processor = [], []
        # A list that was just scored would find some of its answers still there.
        for seed in range(TIMES):
            texts = hypotheses(seed=seed)
            began, used = time.perf_counter(), time.process_time()
            log10_probs(scorer, texts)
            wall.append(1000 * (time.perf_counter() - began))
            processor.append(1000 * (time.process_time() - used))
        found[f"threads_{threads}"] = {
            "milliseconds": round(min(wall), 1),
            "processor_milliseconds": round(min(processor), 1),
        }
    return found


if __name__ == "__main__":
    run(main, "python -m experiments.rescoring_time")
