"""The default model that the package carries: trained, made small, and measured.

make default-model
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.default_texts import Prepared, mixed, notices, prepared, sources
from experiments.markup import markdown
from unbounded.cli.main import run
from unbounded.console import meter, say
from unbounded.corpus import Line, Tokenizer, read_sentences, training_text
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.evaluation.tables import plain
from unbounded.files import write_text_atomically
from unbounded.lm import NetworkConfig, Pretrained, TrainingConfig, load_model, train_model
from unbounded.lm.model_folder import (
    CONFIG,
    CURVE,
    TEXT,
    VOCABULARY,
    WEIGHTS,
    checksum,
    in_eight_bits,
    read_arrays,
    write_arrays,
    write_words,
)

WORDS = 28_000
"""The most frequent words, 98.8 % of all; with 192 units they leave room for n-grams in 10 MB."""

NETWORK = NetworkConfig(units=192, cutoffs=(2_000, 10_000))
TRAINING = TrainingConfig(epochs=3, dropout=0.1)

KEPT = 2_000_000
"""Words of the training text that are kept, for n-grams: a byte each."""

MEASURED = EvaluationConfig(rows=("static", "full"), protocol="open", tokens=15_000, every=15_000)
"""The network alone and all together, over words held out of each text; nothing is left out."""

MOST = 10_000_000
"""Bytes of the model at most, all files together."""


def trained(folder: Path, texts: Sequence[Prepared]) -> None:
    """Train on all texts, or go on with it; nothing if it is done."""
    if (folder / CONFIG).exists():
        return
    tokenizer = Tokenizer()
    train, held = ([getattr(text, part) for text in texts] for part in ("train", "held"))
    text = training_text(
        read_sentences(mixed(train), tokenizer),
        _words(mixed(train)),
        read_sentences(mixed(held), tokenizer),
        vocabulary_size=WORDS,
    )
    with meter("training", len(text.words) * TRAINING.epochs) as show:
        for at in train_model(folder, text, tokenizer, NETWORK, TRAINING, resume=True):
            show(at.words, f"perplexity {at.train_perplexity:,.1f}")
            if at.valid_perplexity is not None:
                say(f"epoch {at.epoch}: {at.valid_perplexity:,.2f} held out, {at.seconds:,.0f} s")


def small(model: Pretrained, folder: Path, out: Path) -> None:
    """The same model with weights in 8 bits, and as much of its text as there is room for."""
    assert model.text is not None
    out.mkdir(parents=True, exist_ok=True)
    write_arrays(out / WEIGHTS, in_eight_bits(read_arrays(folder / WEIGHTS)[0]), {})
    words = model.vocabulary.to_text()
    write_text_atomically(out / VOCABULARY, words)
    write_text_atomically(out / CURVE, (folder / CURVE).read_text("utf-8"))
    write_words(out / TEXT, model.text[:KEPT], words.encode(), packed=True)
    sums = {name: checksum(out / name) for name in (WEIGHTS, VOCABULARY)}
    config = {**model.config, "checksums": sums}
    write_text_atomically(out / CONFIG, json.dumps(config, indent=2) + "\n")


def card(model: Pretrained, packed: Pretrained, texts: Sequence[Prepared]) -> dict[str, Any]:
    """What it was made of and how good it is, text by text."""
    rows = []
    for text in texts:
        full, eight = (_perplexities(one, text) for one in (model, packed))
        row: dict[str, Any] = {
            "text": text.source.title,
            "package": text.source.package,
            "license": text.source.license,
            "words": _words(chain.from_iterable(text.train)),
            "held_out": _words(chain.from_iterable(text.held)),
            "perplexity": eight,
            "perplexity_float32": full,
        }
        say(f"{text.source.title}: {eight}")
        rows.append(row)
    changes = [
        math.log(row["perplexity"]["static"] / row["perplexity_float32"]["static"]) for row in rows
    ]
    return {
        "command": "make default-model",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "license": "MIT; those of the texts are in LICENSES.txt",
        "words": sum(row["words"] for row in rows),
        "vocabulary": packed.vocabulary.base_size,
        "network": asdict(NETWORK),
        "training": dict(model.config["training"]),
        "text_kept": KEPT,
        "measured": f"the first {MEASURED.tokens:,} words held out of each text, open protocol",
        "cost_of_8_bits": math.expm1(sum(changes) / len(changes)),
        "texts": rows,
    }


def table(card: dict[str, Any]) -> str:
    """A row a text, as Markdown, for docs/default-model.md."""
    head = "text (package, license)", "words", "network alone", "in float32", "all together"
    lines = []
    for row in card["texts"]:
        found, exact = row["perplexity"], row["perplexity_float32"]
        values = found["static"], exact["static"], found["full"]
        text = f"{row['text']} ({row['package']}, {row['license']})"
        lines.append((text, [f"{row['words']:,}", *(f"{value:.1f}" for value in values)]))
    return markdown(plain("", head, lines))


def _perplexities(model: Pretrained, text: Prepared) -> dict[str, float]:
    found = evaluate(model, list(chain.from_iterable(text.held)), MEASURED)
    return {row.name: round(row.tally.perplexity, 2) for row in found.rows}


def _words(lines: Iterable[Line]) -> int:
    return sum(len(one.words) for one in read_sentences(lines, Tokenizer()))


def main(
    packages: Annotated[Path, typer.Option(metavar="DIR", help="Where the texts' packages are.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="Where the training is kept.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the model goes.")],
) -> None:
    """Train the default model on all texts, and write it in 8 bits with its card."""
    texts = [prepared(source) for source in sources(packages)]
    trained(work, texts)
    model = load_model(work)
    small(model, work, out)
    write_text_atomically(out / "LICENSES.txt", notices(packages))
    about = card(model, load_model(out), texts)
    write_text_atomically(out / "card.json", json.dumps(about, indent=2) + "\n")
    size = sum(path.stat().st_size for path in out.iterdir())
    say(f"{out}: {size:,} bytes, perplexity {about['cost_of_8_bits']:+.2%} by 8 bits")
    assert size <= MOST


if __name__ == "__main__":
    run(main, "python -m experiments.default_model")
