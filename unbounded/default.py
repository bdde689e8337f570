"""Models trained once and then kept; among them the default, for who has none."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, zip_longest
from pathlib import Path

from unbounded.corpus import Line, Tokenizer, demo_text, read_sentences
from unbounded.errors import ModelError
from unbounded.files import cache_folder
from unbounded.lm import (
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    TrainingText,
    load_model,
    training_text,
)
from unbounded.lm.model_folder import CONFIG, keep_text

TOKENS = 600_000
NETWORK = NetworkConfig(units=128)
TRAINING = TrainingConfig(epochs=3, learning_rate=0.1, dropout=0.1)


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


def default_folder() -> Path:
    """Where it is kept: the user's cache directory, `XDG_CACHE_HOME` or ~/.cache."""
    return cache_folder() / "default-model-1"


def default_model(
    show: Callable[[Progress, int], None],
    tokens: int = TOKENS,
    network: NetworkConfig = NETWORK,
    training: TrainingConfig = TRAINING,
    wait: Callable[[str], None] = lambda process: None,
) -> Pretrained:
    """The default model, trained if it is not there yet; an interrupted training goes on.

    One process trains; another that needs it too waits, and `wait` is told for which process.
    """

    def text(tokenizer: Tokenizer) -> TrainingText:
        return training_text(read_sentences(_lines(), tokenizer), tokens)

    folder = default_folder()
    if (folder / CONFIG).exists():
        return trained_model(folder, text, network, training, show)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(folder.name + ".lock"), wait):
            return trained_model(folder, text, network, training, show)
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be made ({error.strerror}); give --model, or set XDG_CACHE_HOME to a "
            "place that can be written"
        ) from error


@contextmanager
def _alone(path: Path, wait: Callable[[str], None]) -> Iterator[None]:
    """Be the only process in here; the system lets go of the lock however a process ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait(os.pread(file, 32, 0).decode(errors="replace").strip() or "(unknown)")
            fcntl.flock(file, fcntl.LOCK_EX)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def _lines() -> Iterator[Line]:
    """Speech and chat by turns, so that it knows a little of both."""
    both = zip_longest(demo_text("sotu", years=range(1945, 2100)), demo_text("chat"))
    return (line for line in chain.from_iterable(both) if line is not None)
