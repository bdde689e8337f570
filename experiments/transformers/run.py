"""Evaluate a transformer with an unbounded memory on domains of the corpora, a line a result.

    python -m experiments.transformers.run MODEL --corpora DIR --domains wiki,news-2008 \
        --words 100k --first 25k --rows static,knnlm,unbounded,full

The first words of a domain's training part are read first and not scored: they are the whole
memory of a kNN-LM, and what ours begins with. Then so many words of its test part are scored.
Results go to experiments/results/transformers/cells.jsonl; a cell that has one there is left out.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from experiments.corpora import Corpora, first_words
from experiments.results import append_result, read_results
from unbounded.console import parse_size, say
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.lm import Pretrained, TransformerConfig, load_model
from unbounded.presets import MemoryConfig, set_threads

RESULTS = Path(__file__).parents[1] / "results" / "transformers" / "cells.jsonl"


def run(model: Pretrained, texts: Corpora, cell: dict[str, Any]) -> dict[str, Any]:
    """One model over one domain."""
    domain, began = cell["domain"], time.monotonic()
    config = EvaluationConfig(
        rows=tuple(cell["rows"]), memory=MemoryConfig(), every=5_000, block=cell["block"]
    )

    def show(total: int) -> Any:
        told = [0.0]

        def hear(done: int, note: str) -> None:
            if time.monotonic() - told[0] > 30:
                told[0] = time.monotonic()
                say(f"{domain}: {done:,} of {total:,} pieces, {note}")

        return hear

    found = evaluate(
        model,
        first_words(texts.text(domain, "test"), cell["words"]),
        config,
        first=first_words(texts.text(domain, "train"), cell["first"]) if cell["first"] else None,
        validate=first_words(texts.text(domain, "valid"), 10_000)
        if "knnlm-tuned" in cell["rows"]
        else None,
        progress=show,
    )
    curve = [
        {"tokens": at.tokens, **{name: point.perplexity for name, point in at.points.items()}}
        for at in found.checkpoints
    ]
    seconds = round(time.monotonic() - began)
    return {"cell": cell, "result": found.to_json(), "curve": curve, "seconds": seconds}


def main() -> None:
    """Run the cells that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", help="what to call it [default: the last part of its path]")
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("runs/paper"))
    parser.add_argument("--domains", default="news-2008,wiki")
    parser.add_argument("--words", type=parse_size, default=100_000)
    parser.add_argument("--first", type=parse_size, default=25_000)
    parser.add_argument("--rows", default="static,knnlm,unbounded,full")
    parser.add_argument("--key", default="output")
    parser.add_argument("--context", type=int)
    parser.add_argument("--block", type=int, default=2048)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    set_threads(1)
    texts = Corpora(asked.corpora, asked.work, train_tokens=2_000_000)
    have = [result["cell"] for result in read_results(asked.results)]
    model = load_model(asked.model, TransformerConfig(context=asked.context, key=asked.key))
    for domain in asked.domains.split(","):
        cell = {
            "model": asked.name or asked.model.name,
            "domain": domain,
            "words": asked.words,
            "first": asked.first,
            "rows": asked.rows.split(","),
            "key": asked.key,
            "context": model.config["network"]["context"],
            "block": asked.block,
        }
        if cell not in have:
            append_result(asked.results, run(model, texts, cell))


if __name__ == "__main__":
    main()
