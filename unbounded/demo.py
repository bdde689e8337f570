"""The built-in demonstration: train on some decades of addresses, read later ones, then chat."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unbounded.corpus import Line, Tokenizer, TrainingText, read_sentences, training_text
from unbounded.corpus.builtin import demo_text
from unbounded.errors import ModelError
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.evaluation.evaluation import Evaluation
from unbounded.lm import NetworkConfig, Pretrained, Progress, TrainingConfig, load_model
from unbounded.lm.model_folder import CONFIG, keep_text

TRAIN_TOKENS = 350_000
READ_TOKENS = 60_000


@dataclass(frozen=True)
class DemoText:
    """A built-in text that can be gone through again and again."""

    title: str
    name: str
    years: range | None = None

    def __iter__(self) -> Iterator[Line]:
        return demo_text(self.name, years=self.years)


TRAIN = DemoText("addresses of American presidents, 1945 to 1989", "sotu", range(1945, 1990))
NEAR = DemoText("addresses of American presidents since 1990", "sotu", range(1990, 2100))
FAR = DemoText("chat between strangers", "chat")

# Small, so that the whole demonstration stays well under three minutes on two cores.
NETWORK = NetworkConfig(units=128)
TRAINING = TrainingConfig(epochs=3, dropout=0.1)


def trained_model(
    folder: Path,
    text: Callable[[Tokenizer], TrainingText],
    network: NetworkConfig,
    config: TrainingConfig,
    show: Callable[[Progress, int], None],
) -> Pretrained:
    """The model in `folder`: opened if it is there, trained (or trained on) if not.

    `text` is only asked for when there is something to train, or when a model lacks the words it
    was trained on; `show` hears how far it is, and how many words all epochs have together.
    """
    if not (folder / CONFIG).exists():
        from unbounded.lm import train_model

        tokenizer = Tokenizer()
        ready = text(tokenizer)
        total = len(ready.words) * config.epochs
        for progress in train_model(folder, ready, tokenizer, network, config, resume=True):
            show(progress, total)
    model = load_model(folder)
    had = model.config["training"]
    for name, asked in asdict(config).items():
        if had[name] != asked:
            raise ModelError(
                f"{folder} was trained with {name} {had[name]}, not {asked}; remove it to train it "
                "again, or choose another place"
            )
    assert isinstance(model.tokenizer, Tokenizer)
    return model if model.text is not None else keep_text(folder, model, text(model.tokenizer))


def demo_model(folder: Path, seed: int, show: Callable[[Progress, int], None]) -> Pretrained:
    """The demonstration's small network, trained once and then kept."""

    def text(tokenizer: Tokenizer) -> TrainingText:
        return training_text(read_sentences(TRAIN, tokenizer), TRAIN_TOKENS)

    return trained_model(folder, text, NETWORK, replace(TRAINING, seed=seed), show)


def demo_evaluation(model: Pretrained, text: DemoText, **more: Any) -> Evaluation:
    """The paper's four rows, and all together, on one of the demonstration's texts."""
    return evaluate(model, text, EvaluationConfig(tokens=READ_TOKENS, every=2_000), **more)
