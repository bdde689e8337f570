"""One cell of a table: train on one domain, read another under every line, keep what came out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from experiments import reading
from experiments.config import TRAININGS, Cell, TrainingScale
from experiments.corpora import SEED, Corpora
from experiments.reading import Lines, Mixing, read_on
from unbounded.console import say
from unbounded.corpus import Reader, Tokenizer, TrainingText, blocks, read_sentences, training_text
from unbounded.demo import trained_model
from unbounded.experts import Expert, Kernel
from unbounded.lm import NetworkConfig, Pretrained, Progress
from unbounded.mixture import Fixed
from unbounded.model import OnlineModel
from unbounded.presets import GATED, PAPER, MemoryConfig, build_online, experts_for

POINTS = 100
"""Of a curve."""

_NATIVE = replace(PAPER, index="auto")
_UNIT = replace(_NATIVE, normalize=True)
MEMORIES = {
    "paper": PAPER,
    "epanechnikov": replace(PAPER, kernel=Kernel("epanechnikov", 1.0)),
    "native": _NATIVE,
    "unit": _UNIT,
    "family": replace(_UNIT, kernel=None),
}
"""Unbounded caches that remember as the paper's does, and with one thing after the other changed;
the next would be how many neighbors there are, and that is the cache of all presets."""

Further = Mapping[str, Callable[[OnlineModel], Expert]]
"""How experts that no preset has are made, given a model with the others."""


def model_for(
    domain: str, training: str, corpora: Corpora, work: Path, scale: TrainingScale
) -> Pretrained:
    """The static model of a domain, trained once and then kept."""

    def text(tokenizer: Tokenizer) -> TrainingText:
        train, valid = (
            read_sentences(Reader([corpora.text(domain, part)]), tokenizer)
            for part in ("train", "valid")
        )
        return training_text(train, scale.tokens, valid)

    def show(progress: Progress, total: int) -> None:
        if progress.valid_perplexity is not None:
            found = f"perplexity {progress.train_perplexity:,.1f}, {progress.valid_perplexity:,.1f}"
            say(f"training on {domain}: {progress.words:,} of {total:,} words, {found}")

    way = TRAININGS[training]
    epochs = min(scale.epochs, way.epochs)
    config = replace(way, epochs=epochs, seed=SEED)
    named = f"{domain}-{scale.tokens}-{epochs}-{training}"
    return trained_model(work / "models" / named, text, NetworkConfig(), config, show)


def stream(path: Path, model: Pretrained, tokens: int, size: int = 0) -> Iterator[list[str]]:
    """The first words of a text, in blocks."""
    sentences = read_sentences(Reader([path]), model.tokenizer)
    for block in blocks(sentences, size or reading.BLOCK, tokens):
        yield block.words


def usual_lines(rows: Sequence[str], protocol: str = "paper") -> dict[str, Mixing]:
    """The rows of `evaluate`, and an unbounded cache with the paper's own settings."""
    return {
        row: Mixing(("static", "uniform", "paper"))
        if row == "paper"
        else Mixing(experts_for(row, protocol), row in GATED)
        for row in rows
    }


def read_cell(
    cell: Cell,
    model: Pretrained,
    corpora: Corpora,
    kept: Path,
    lines: Mapping[str, Mixing],
    further: Further = MappingProxyType({}),
    *,
    protocol: str = "paper",
) -> dict[str, Any]:
    """Read the test text once under every line.

    Fixed weights are fitted on a text of the training domain that the network was not trained on.
    OOV words are read as the paper has it, and in the open protocol by their characters.
    """
    test, valid = corpora.text(cell.test, "test"), corpora.text(cell.train, "valid")
    met = model.vocabulary.copy()
    for path in (test, valid):
        for words in stream(path, model, cell.tokens):
            met.encode(words)
    size = None if protocol == "open" else len(met)
    names = list(dict.fromkeys(name for line in lines.values() for name in line.experts))

    def new_model() -> OnlineModel:
        return _online(model, size, names, further, "characters" if protocol == "open" else "unk")

    run = Lines(new_model(), lines, model.tokenizer.characters, max(1_000, cell.tokens // POINTS))
    read_on(
        run,
        stream(test, model, cell.tokens),
        kept,
        lambda: run.fit(new_model(), stream(valid, model, cell.tokens)),
        f"{cell.train} → {cell.test}",
    )
    return {
        "seed": SEED,
        "trained": model.config["training"],
        "vocabulary": len(met),
        "protocol": protocol,
        "fitted_in": cell.train,
        **run.to_json(),
    }


def _online(
    model: Pretrained, size: int | None, names: Sequence[str], further: Further, oov: str
) -> OnlineModel:
    """A model with all these experts that has read nothing yet; its lines mix for themselves."""

    def build(names: Sequence[str], memory: MemoryConfig = MemoryConfig()) -> OnlineModel:
        even = Fixed(np.full(len(names), 1 / len(names)))
        return build_online(model, size, names, memory, oov, mixture=even)

    usual = build([name for name in names if name not in MEMORIES and name not in further])
    caches = {
        name: build(["unbounded"], MEMORIES[name]).experts["unbounded"]
        for name in names
        if name in MEMORIES
    }
    others = {name: make(usual) for name, make in further.items()}
    experts = {**usual.experts, **caches, **others}
    even = Fixed(np.full(len(experts), 1 / len(experts)))
    return OnlineModel(usual.lm, usual.vocabulary, experts, even)


def count_vocabulary(cell: Cell, model: Pretrained, corpora: Corpora) -> dict[str, Any]:
    """Count; nothing is predicted."""
    met = model.vocabulary.copy()
    own: set[str] = set()
    tokens = oov = 0
    for words in stream(corpora.text(cell.test, "test"), model, cell.tokens):
        ids = met.encode(words)
        own.update(words)
        tokens += len(ids)
        oov += int((ids >= met.base_size).sum())
    return {
        "seed": SEED,
        "tokens": tokens,
        "types": len(own),
        "vocabulary": len(met),
        "oov_rate": oov / max(tokens, 1),
    }
