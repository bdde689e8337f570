"""Score a text under every row, as the command line and Python both do."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.corpus import (
    Block,
    Line,
    Reader,
    Splitter,
    Text,
    Vocabulary,
    as_lines,
    blocks,
    read_sentences,
    write_lines,
)
from unbounded.datastore import Datastore
from unbounded.errors import CorpusError, SettingError, check_settings
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.metrics import FrequencyBuckets
from unbounded.evaluation.rows import USUAL, Row, Watcher, experts_of, make_rows
from unbounded.experts import Cache, NGram, Offline
from unbounded.experts.offline import tuned
from unbounded.lm import Pretrained, load_model
from unbounded.mixture import Fixed
from unbounded.model import OnlineModel
from unbounded.presets import OFFLINE, MemoryConfig, build_online, check_oov

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
    """Words at most of a text that is read first; None is all of it, whatever `tokens` is."""
    block: int = 8192
    every: int = 10_000

    def __post_init__(self) -> None:
        if self.mixture not in ("online", "fixed", "both"):
            raise SettingError(f"mixture {self.mixture!r} is unknown; use online, fixed or both")
        check_oov(self.oov)
        check_settings(self, least_one="block every")


def evaluate(
    model: Pretrained | str | Path,
    text: Text,
    config: EvaluationConfig = EvaluationConfig(),
    *,
    validate: Text | None = None,
    first: Text | None = None,
    watchers: Sequence[Watcher] = (),
    progress: Callable[[int], Callable[[int, str], None]] = lambda total: lambda done, note: None,
    datastore: Callable[[], Datastore] | None = None,
) -> Evaluation:
    """Score a text under every row in one pass, in one protocol; a model is one, or its folder.

    The text is gone through twice: once to count its words, because the paper's uniform is over
    training and test words together, and once to score it. In the open protocol the count is for
    `progress` and for where fitting ends, and the model is not told. `progress` is told how many
    words there are and gives back what hears how far it is. A text to read `first` is learned and
    not scored; it is all that the memory of a kNN-LM knows. Fixed weights are fitted on the text
    to `validate` on. `datastore` makes that of the unbounded cache, if it lies elsewhere.
    """
    if not isinstance(model, Pretrained):
        model = load_model(model)
    _check_texts(model, config, validate is not None, first is not None)
    kept, closed = model.text is not None, model.lm.closed
    rows = make_rows(config.rows, model.lm.width, config.protocol, text=kept, closed=closed)
    experts, met, both = experts_of(rows), model.vocabulary.copy(), config.mixture == "both"
    with ExitStack() as stack:

        def words(given: Text, tokens: int | None) -> _Words:
            lines = stack.enter_context(readable_twice(given, model.tokenizer, tokens))
            return _Words(model, lines, tokens, config.block)

        scored = words(text, config.tokens)
        tuning = None if validate is None else words(validate, config.tokens)
        before = None if first is None else words(first, config.first_tokens)
        total = scored.count(met)
        for other in (tuning, before):
            if other is not None and not closed:
                other.count(met)
        size = None if config.protocol == "open" else len(met)

        def new_model() -> OnlineModel:
            # Rows mix for themselves: a mixture of its own would learn for nobody.
            even = Fixed(np.full(len(experts), 1 / len(experts)))
            return build_online(model, size, experts, config.memory, config.oov, datastore, even)

        online, stream, fitted = new_model(), scored.blocks(), 0
        buckets = FrequencyBuckets(model.lm.base_size)
        if before is not None:
            for block in before.blocks():
                reading = online.read(block.words)
                buckets.bands(reading.ids)
                for row in rows:
                    row.score(reading, row.columns(reading))
            _close(model, online, rows, tuning)
        if config.mixture != "online" and tuning is not None:
            fitted = fit_rows(new_model(), tuning.blocks(), rows, beside=both)
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
    _add_memory(evaluation, online)
    return evaluation


@dataclass(frozen=True)
class _Words:
    """The first words of a text, so many, in blocks."""

    model: Pretrained
    lines: Iterable[Line]
    tokens: int | None
    block: int

    def blocks(self, tokens: int | None = None) -> Iterator[Block]:
        """All of them, or so many at most."""
        size, lm = self.block, self.model.lm
        if lm.closed:
            # A row of probabilities over a large vocabulary is long: so many at once at most.
            size = min(size, max(CELLS // lm.base_size, 64))
        sentences = read_sentences(self.lines, self.model.tokenizer)
        return blocks(sentences, size, tokens or self.tokens)

    def count(self, vocabulary: Vocabulary) -> int:
        """Meet every word; how many there are."""
        total = 0
        for block in self.blocks():
            vocabulary.encode(block.words)
            total += len(block.words)
        return total


@contextmanager
def readable_twice(
    text: Text, tokenizer: Splitter, tokens: int | None = None
) -> Iterator[Iterable[Line]]:
    """The lines of a text that can be gone through again: a pipe is set down in a file meanwhile.

    Only the first `tokens` words of a pipe are, so that an endless one will do.
    """
    lines = as_lines(text)
    if not isinstance(lines, Reader) or lines.bytes_total is not None:
        yield lines
        return
    with tempfile.TemporaryDirectory() as folder:
        spooled = Path(folder) / "text.txt"
        write_lines(lines, spooled, tokenizer, tokens)
        yield Reader([spooled])


def fit_rows(
    model: OnlineModel,
    blocks: Iterable[Block],
    rows: Sequence[Row],
    buckets: FrequencyBuckets | None = None,
    *,
    beside: bool = False,
) -> int:
    """Read blocks without scoring them, then fix each row's weights at the best for them.

    `buckets` count the words, for when the same model goes on to read what is scored. With
    `beside`, each row goes on with online weights, and the fitted ones are kept to compare.
    """
    tables: dict[str, list[np.ndarray]] = {row.name: [] for row in rows}
    tokens = 0
    for block in blocks:
        reading = model.read(block.words)
        tokens += len(reading.words)
        if buckets is not None:
            buckets.bands(reading.ids)
        for row in rows:
            tables[row.name].append(row.columns(reading))
            if buckets is not None and beside:
                row.score(reading, tables[row.name][-1])
    if tokens == 0:
        raise CorpusError(
            "the text to fit the weights on is empty; give more, or use --mixture online"
        )
    for row in rows:
        row.fit(np.concatenate(tables[row.name]), beside=beside)
    return tokens


def split_first(blocks: Iterable[Block], tokens: int) -> tuple[list[Block], Iterator[Block]]:
    """The first `tokens` words exactly, and an iterator over the rest."""
    rest = iter(blocks)
    first: list[Block] = []
    for block in rest:
        here = min(tokens, len(block.words))
        tokens -= here
        first.append(_part(block, slice(here)))
        if tokens == 0:
            return first, chain([_part(block, slice(here, None))], rest)
    return first, rest


def _part(block: Block, part: slice) -> Block:
    return Block(block.words[part], block.documents, block.document[part], block.line[part])


def _check_texts(model: Pretrained, config: EvaluationConfig, validate: bool, first: bool) -> None:
    """Refuse rows that lack the text they need, and a text that no row needs."""
    asked = [name for name in config.rows if name in OFFLINE]
    if asked and not model.lm.closed:
        raise SettingError(
            f"row {asked[0]!r} gives nothing to OOV words, which this model has; use a transformer"
        )
    if asked and not first:
        raise SettingError(
            f"row {asked[0]!r} knows nothing but a text that is read first; give one with --first"
        )
    if "knnlm-tuned" in asked and not validate:
        raise SettingError(
            "row 'knnlm-tuned' needs a text to be tuned on; give one with --validate"
        )
    if validate and config.mixture == "online" and "knnlm-tuned" not in asked:
        raise SettingError(
            "a text to validate on was given, but online weights need none; "
            "leave --validate out, or use --mixture fixed or both"
        )


def _close(
    model: Pretrained, online: OnlineModel, rows: Sequence[Row], tuning: _Words | None
) -> None:
    """Close the memories of kNN-LMs; the temperature and the share of one are tuned first."""
    for row in rows:
        if row.name not in OFFLINE:
            continue
        expert = online.experts[OFFLINE[row.name]]
        assert isinstance(expert, Offline)
        temperature = None
        if row.name == "knnlm-tuned":
            assert tuning is not None
            hidden, state = model.lm.start()
            parts, words = [hidden], []
            for block in tuning.blocks(TUNED_TOKENS):
                words.append(model.vocabulary.lookup(block.words))
                after, state = model.lm.advance(state, words[-1])
                parts.append(after)
            before, ids = np.concatenate(parts)[:-1], np.concatenate(words)
            static = model.lm.prob(before, ids)
            temperature, share, _ = tuned(expert, before, ids, static)
            row.mixture = Fixed(np.array([1 - share, share]))
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


def _add_memory(evaluation: Evaluation, online: OnlineModel) -> None:
    """How much the experts remember, and what happened to their memories."""
    for name, expert in online.experts.items():
        if isinstance(expert, Offline):
            evaluation.memory |= {
                f"{name}_entries": len(expert.cache.datastore),
                f"{name}_temperature": expert.temperature,
            }
        elif isinstance(expert, Cache):
            evaluation.memory |= {
                f"{name}_entries": len(expert.datastore),
                f"{name}_bytes_per_entry": expert.datastore.bytes_per_entry,
            }
            evaluation.events += [str(event) for event in expert.datastore.events]
        elif isinstance(expert, NGram):
            evaluation.memory[f"{name}_bytes"] = expert.bytes
