"""One cell of a table: train on one domain, read another under every row, keep what came out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.config import Cell, TrainingScale
from experiments.corpora import SEED, Corpora
from unbounded.corpus import Reader, Tokenizer, blocks, read_sentences
from unbounded.demo import trained_model
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.rows import Watcher
from unbounded.lm import (
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    TrainingText,
    training_text,
)
from unbounded.presets import MemoryConfig


def model_for(
    domain: str,
    units: int,
    corpora: Corpora,
    work: Path,
    scale: TrainingScale,
    show: Callable[[Progress, int], None],
) -> Pretrained:
    """The static model of a domain, so many units wide, trained once and then kept."""

    def text(tokenizer: Tokenizer) -> TrainingText:
        train, valid = (
            read_sentences(Reader([corpora.text(domain, part)]), tokenizer)
            for part in ("train", "valid")
        )
        return training_text(train, scale.tokens, valid)

    wide = "" if units == NetworkConfig.units else f"-{units}"
    folder = work / "models" / f"{domain}-{scale.tokens}-{scale.epochs}{wide}"
    config = TrainingConfig(epochs=scale.epochs, seed=SEED)
    return trained_model(folder, text, NetworkConfig(units=units), config, show)


def run_cell(
    cell: Cell,
    model: Pretrained,
    corpora: Corpora,
    progress: Callable[[int], Callable[[int, str], None]],
    protocol: str = "paper",
    watchers: Sequence[Watcher] = (),
) -> dict[str, Any]:
    """Read the test text once under every row; fixed weights are fitted on its first part."""
    config = EvaluationConfig(
        rows=cell.rows,
        memory=MemoryConfig(index=cell.index, k=cell.k, normalize=cell.key == "normalized"),
        oov="unk",
        protocol=protocol,
        mixture=cell.mixture,
        tokens=cell.tokens,
        every=max(1_000, cell.tokens // 100),
    )
    text = Reader([corpora.text(cell.test, "test")])
    evaluation = evaluate(model, text, config, watchers=watchers, progress=progress)
    return {
        "cell": asdict(cell),
        "seed": SEED,
        "trained": model.config["training"],
        **evaluation.to_json(),
        "curve": _curve(evaluation),
    }


def _curve(evaluation: Evaluation) -> dict[str, Any]:
    """Perplexity of each stretch of the text, row by row."""
    points = evaluation.checkpoints
    return {
        "tokens": [point.tokens for point in points],
        **{
            row.name: [round(point.points[row.name].recent_perplexity, 4) for point in points]
            for row in evaluation.rows
        },
    }


def run_vocabulary(cell: Cell, model: Pretrained, corpora: Corpora) -> dict[str, Any]:
    """Count; nothing is predicted."""
    met = model.vocabulary.copy()
    own: set[str] = set()
    tokens = oov = 0
    text = Reader([corpora.text(cell.test, "test")])
    for block in blocks(read_sentences(text, model.tokenizer), 8192, cell.tokens):
        ids = met.encode(block.words)
        own.update(block.words)
        tokens += len(ids)
        oov += int((ids >= met.base_size).sum())
    return {
        "cell": asdict(cell),
        "seed": SEED,
        "tokens": tokens,
        "types": len(own),
        "vocabulary": len(met),
        "oov_rate": oov / max(tokens, 1),
    }
