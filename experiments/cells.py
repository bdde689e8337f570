"""One cell of a table: train on one domain, read another under every row, keep what came out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.corpora import SEED, Corpora
from unbounded.corpus import Reader, Tokenizer, read_sentences
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.progressive import Watcher
from unbounded.evaluation.rows import USUAL
from unbounded.jobs import EvaluationConfig, evaluate, trained_model
from unbounded.lm import (
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    TrainingText,
    training_text,
)
from unbounded.presets import MemoryConfig


@dataclass(frozen=True)
class Cell:
    """Which domain to train on, which to read, how much, and with which rows."""

    train: str
    test: str
    tokens: int
    rows: tuple[str, ...] = USUAL
    mixture: str = "both"
    index: str = "auto"
    k: int = 1024
    key: str = "normalized"
    """What the memory is searched by; see `reproduce.keys`. Rows know hidden and normalized."""
    units: int = NetworkConfig.units
    """How wide the network is."""


@dataclass(frozen=True)
class TrainingScale:
    """How long the static models train; the paper's, and a smaller one that keeps the shape."""

    tokens: int
    epochs: int


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
