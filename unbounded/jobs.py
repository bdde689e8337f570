"""Whole jobs, as the command line and Python both run them."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.corpus import (
    Block,
    Line,
    Reader,
    Splitter,
    Tokenizer,
    Vocabulary,
    blocks,
    read_sentences,
    write_lines,
)
from unbounded.datastore import Datastore
from unbounded.errors import ModelError, SettingError
from unbounded.evaluation.evaluation import (
    Evaluation,
    experts_of,
    fit_rows,
    make_rows,
    read_first,
    split_first,
)
from unbounded.evaluation.metrics import FrequencyBuckets
from unbounded.evaluation.progressive import Watcher
from unbounded.evaluation.rows import OFFLINE, USUAL, Row
from unbounded.experts import Cache, NGram, Offline
from unbounded.experts.offline import tuned
from unbounded.lm import (
    NetworkConfig,
    Pretrained,
    Progress,
    TrainingConfig,
    TrainingText,
    load_model,
)
from unbounded.lm.checkpoint import CONFIG, keep_text
from unbounded.mixture import Fixed
from unbounded.model import OnlineModel
from unbounded.presets import MemoryConfig, build_online, check_oov

TUNED_TOKENS = 10_000
"""How much of a text at most goes to tuning a kNN-LM."""

CELLS = 1 << 25
"""Probabilities that are held at once at most, where a network gives all of them for each piece."""

FITTED_TOKENS = 100_000
"""How much of a text at most goes to fitting fixed weights when no other text is given."""


@dataclass(frozen=True)
class EvaluationConfig:
    """What to measure, and how; the paper's four rows and all together, in its protocol."""

    rows: tuple[str, ...] = USUAL
    memory: MemoryConfig = MemoryConfig()
    oov: str = "characters"
    """The paper does not say how unknown words are read; `unk` reads all alike."""
    protocol: str = "paper"
    mixture: str = "online"
    tokens: int | None = None
    first_tokens: int | None = None
    """Words at most of a text that is read first."""
    block: int = 8192
    every: int = 10_000

    def __post_init__(self) -> None:
        if self.mixture not in ("online", "fixed", "both"):
            raise SettingError(f"mixture {self.mixture!r} is unknown; use online, fixed or both")
        check_oov(self.oov)
        for name in ("block", "every"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be at least 1")


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


def evaluate(
    model: Pretrained,
    text: Iterable[Line],
    config: EvaluationConfig = EvaluationConfig(),
    *,
    validate: Iterable[Line] | None = None,
    first: Iterable[Line] | None = None,
    watchers: Sequence[Watcher] = (),
    progress: Callable[[int], Callable[[int, str], None]] = lambda total: lambda done, note: None,
    pairs: Callable[[Vocabulary], Datastore] | None = None,
) -> Evaluation:
    """Score a text, such as a `Reader`, under every row in one pass, in one protocol.

    The text is gone through twice: once to count its words, because the paper's uniform is over
    training and test words together, and once to score it. In the open protocol the count is for
    `progress` and for where fitting ends, and the model is not told. `progress` is told how many
    words there are and gives back what hears how far it is. A text to read `first` is learned and
    not scored; it is all that the memory of a kNN-LM knows. `pairs` makes the memory
    of the unbounded cache, if it lies elsewhere.
    """
    _check_offline(model, config, validate, first)
    tuning = "knnlm-tuned" in config.rows
    if validate is not None and config.mixture == "online" and not tuning:
        raise SettingError(
            "a text to validate on was given, but online weights need none; "
            "leave --validate out, or use --mixture fixed or both"
        )
    kept = model.text is not None
    closed = model.lm.closed
    rows = make_rows(config.rows, model.lm.width, config.protocol, text=kept, closed=closed)
    met = model.vocabulary.copy()
    total = _count(met, model, text, config.tokens)
    for other, tokens in ((validate, None), (first, config.first_tokens)):
        if other is not None and not closed:
            _count(met, model, other, tokens or config.tokens)
    experts = experts_of(rows)
    size = None if config.protocol == "open" else len(met)
    online = _unmixed(build_online(model, size, experts, config.memory, config.oov, pairs))
    stream = _blocks(model, text, config)
    fitted = 0
    buckets = FrequencyBuckets(model.lm.base_size)
    both = config.mixture == "both"
    if first is not None:
        before = _blocks(model, first, config, config.first_tokens)
        read_first(online, before, rows, buckets)
        _close(model, online, rows, validate, config)
    if config.mixture != "online" and validate is not None:
        fork = build_online(model, size, experts, config.memory, config.oov, pairs)
        fitted = fit_rows(_unmixed(fork), _blocks(model, validate, config), rows, beside=both)
    elif config.mixture != "online":
        tenth, stream = split_first(stream, min(total // 10, FITTED_TOKENS))
        fitted = fit_rows(online, tenth, rows, buckets, beside=both)
        total -= fitted
    evaluation = Evaluation(_settings(config, fitted), len(met), rows, splitter=model.tokenizer)
    if not kept and "full" in config.rows:
        evaluation.events.append(
            "this model keeps no training text: 'full' goes without the n-grams of it"
        )
    show = progress(total)
    evaluation.run(
        online, stream, every=config.every, watchers=watchers, buckets=buckets, show=show
    )
    for name, expert in online.experts.items():
        if isinstance(expert, Offline):
            evaluation.memory |= {
                f"{name}_entries": len(expert.cache.memory),
                f"{name}_temperature": expert.temperature,
            }
        elif isinstance(expert, Cache):
            evaluation.memory |= {
                f"{name}_entries": len(expert.memory),
                f"{name}_bytes_per_entry": expert.memory.bytes_per_entry,
            }
            evaluation.events += [str(event) for event in expert.memory.events]
        elif isinstance(expert, NGram):
            evaluation.memory[f"{name}_bytes"] = expert.bytes
    return evaluation


def _unmixed(online: OnlineModel) -> OnlineModel:
    """The same for rows that mix for themselves: a mixture of its own would learn for nobody."""
    many = len(online.experts)
    return online.fork(mixture=Fixed(np.full(many, 1 / many)))


def _check_offline(
    model: Pretrained,
    config: EvaluationConfig,
    validate: Iterable[Line] | None,
    first: Iterable[Line] | None,
) -> None:
    asked = [name for name in config.rows if name in OFFLINE]
    if asked and not model.lm.closed:
        raise SettingError(
            f"row {asked[0]!r} gives nothing to OOV words, which this model has; use a transformer"
        )
    if asked and first is None:
        raise SettingError(
            f"row {asked[0]!r} knows nothing but a text that is read first; give one with --first"
        )
    if "knnlm-tuned" in asked and validate is None:
        raise SettingError(
            "row 'knnlm-tuned' needs a text to be tuned on; give one with --validate"
        )


def _close(
    model: Pretrained,
    online: OnlineModel,
    rows: Sequence[Row],
    validate: Iterable[Line] | None,
    config: EvaluationConfig,
) -> None:
    """Close the memories of kNN-LMs; the temperature and the share of one are tuned first."""
    for row in rows:
        if row.name not in OFFLINE:
            continue
        expert = online.experts[OFFLINE[row.name]]
        assert isinstance(expert, Offline)
        temperature = None
        if row.name == "knnlm-tuned":
            assert validate is not None
            hidden, state = model.lm.start()
            parts, words = [hidden], []
            for block in _blocks(model, validate, config, TUNED_TOKENS):
                words.append(model.vocabulary.lookup(block.words))
                after, state = model.lm.advance(state, words[-1])
                parts.append(after)
            before, ids = np.concatenate(parts)[:-1], np.concatenate(words)
            static = model.lm.prob(before, ids)
            temperature, share, _ = tuned(expert, before, ids, static)
            row.share(share)
        expert.close(temperature)


def _settings(config: EvaluationConfig, fitted: int) -> dict[str, Any]:
    return {
        "protocol": config.protocol,
        "mixture": config.mixture,
        "fitted_on": fitted,
        "block": config.block,
        "oov": config.oov,
        **asdict(config.memory),
    }


def _blocks(
    model: Pretrained, text: Iterable[Line], config: EvaluationConfig, tokens: int | None = None
) -> Iterator[Block]:
    # A row of probabilities over a large vocabulary is long: so many of them at once at most.
    size = min(config.block, max(CELLS // model.lm.base_size, 64)) if model.lm.closed else None
    sentences = read_sentences(text, model.tokenizer)
    return blocks(sentences, size or config.block, tokens or config.tokens)


def _count(
    vocabulary: Vocabulary, model: Pretrained, text: Iterable[Line], tokens: int | None
) -> int:
    """Meet every word of a text; returns how many words there are."""
    total = 0
    for block in blocks(read_sentences(text, model.tokenizer), 8192, tokens):
        vocabulary.encode(block.words)
        total += len(block.words)
    return total


@contextmanager
def readable_twice(
    texts: Sequence[str], tokenizer: Splitter, tokens: int | None = None
) -> Iterator[Reader]:
    """A reader that can be gone through again: what comes through a pipe is set down in a file.

    Only the first `tokens` words of a pipe are, so that an endless one will do.
    """
    reader = Reader(texts)
    if reader.bytes_total is not None:
        yield reader
        return
    with tempfile.TemporaryDirectory() as folder:
        spooled = Path(folder) / "text.txt"
        write_lines(reader, spooled, tokenizer, tokens)
        yield Reader([spooled])
