"""One evaluation of a text: all rows in one pass, weights learned online or fitted first."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from unbounded.corpus import Block, Splitter, Tokenizer
from unbounded.errors import CorpusError, SettingError
from unbounded.evaluation.gains import Gains
from unbounded.evaluation.metrics import BANDS, FrequencyBuckets
from unbounded.evaluation.progressive import Checkpoint, ScoredBlock, Watcher, progressive
from unbounded.evaluation.rows import TITLES, Row
from unbounded.evaluation.word_aggregator import WordAggregator, WordCount
from unbounded.model import OnlineModel
from unbounded.presets import PRESETS as ROWS
from unbounded.presets import PROTOCOLS, experts_for


def make_rows(
    names: Sequence[str],
    width: int = 0,
    protocol: str = "paper",
    *,
    text: bool = True,
    closed: bool = False,
) -> list[Row]:
    """Rows by name, in the order asked for, over states of a width, under one protocol.

    Without a `text` that the network was trained on, no expert has read it. See `experts_for`.
    """
    if protocol not in PROTOCOLS:
        raise SettingError(f"protocol {protocol!r} is unknown; use {' or '.join(PROTOCOLS)}")
    for name in names:
        if name not in ROWS:
            raise SettingError(f"row {name!r} is unknown; choose from {', '.join(ROWS)}")
    if not names or len(set(names)) < len(names):
        raise SettingError(f"rows {', '.join(names)!r}; name each row once, and at least one")
    return [
        Row(name, experts_for(name, protocol, text=text, closed=closed), width) for name in names
    ]


def experts_of(rows: Iterable[Row]) -> list[str]:
    """Every expert that some row needs, once; those of `ROWS["full"]` first, in its order."""
    needed = set(chain.from_iterable(row.experts for row in rows))
    places = zip(*(experts_for("full", protocol) for protocol in PROTOCOLS), strict=True)
    ordered = dict.fromkeys(chain(chain.from_iterable(places), *ROWS.values()))
    return [name for name in ordered if name in needed]


def fit_rows(
    model: OnlineModel,
    blocks: Iterable[Block],
    rows: Sequence[Row],
    buckets: FrequencyBuckets | None = None,
    *,
    beside: bool = False,
) -> int:
    """Read blocks without scoring them, then fix each row's weights at the best for them.

    A `buckets` counts the words, for when the same model goes on to read what is scored. With
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


def read_first(
    model: OnlineModel, blocks: Iterable[Block], rows: Sequence[Row], buckets: FrequencyBuckets
) -> int:
    """Read blocks without scoring them, every row learning; how many words there were."""
    tokens = 0
    for block in blocks:
        reading = model.read(block.words)
        buckets.bands(reading.ids)
        for row in rows:
            row.score(reading, row.columns(reading))
        tokens += len(reading.words)
    return tokens


@dataclass
class Evaluation:
    """Everything an evaluation found; `to_json` is what `--json` writes."""

    settings: dict[str, Any]
    vocabulary: int
    rows: list[Row]
    tokens: int = 0
    oov: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    gains: Gains | None = None
    splitter: Splitter = field(default_factory=Tokenizer)
    words: int | None = None
    """How many words the pieces stand for, where pieces were read."""

    def run(
        self,
        model: OnlineModel,
        blocks: Iterable[Block],
        *,
        every: int,
        watchers: Sequence[Watcher] = (),
        buckets: FrequencyBuckets | None = None,
        show: Callable[[int, str], None] = lambda done, note: None,
    ) -> None:
        """Read the whole text; `show` hears how far it is. See `progressive` for the rest."""
        names = [row.name for row in self.rows]
        if len(names) > 1:
            self.gains = Gains(names[0], names[-1])
        pieces = not self.splitter.parted
        gains: list[Watcher] = [self.gains] if self.gains else []
        counted = WordCount(self.splitter)
        if pieces:
            gains = [counted, *(WordAggregator(self.splitter, watcher) for watcher in gains)]

        def watch(block: ScoredBlock) -> None:
            self.tokens += len(block.reading.words)
            self.oov += int((block.reading.ids >= model.lm.base_size).sum())
            last = self.rows[-1]
            show(self.tokens, f"{last.name} {last.tally.perplexity:,.1f}")

        self.checkpoints += progressive(
            model,
            blocks,
            self.rows,
            every=every,
            watchers=[watch, *gains, *watchers],
            buckets=buckets,
            characters=self.splitter.characters,
        )
        self.words = counted.total if pieces else None
        if self.tokens == 0:
            raise CorpusError("there are no words left to score; give a longer text")

    @property
    def oov_rate(self) -> float:
        """The share of OOV words, words that the network does not know."""
        return self.oov / self.tokens if self.tokens else math.nan

    def to_json(self) -> dict[str, Any]:
        """The figures, as the design lays them out."""
        return {
            "tokens": self.tokens,
            **({} if self.words is None else {"words": self.words}),
            "oov_rate": self.oov_rate,
            "vocabulary": self.vocabulary,
            "rows": [_row_json(row, self.words) for row in self.rows],
            **self.settings,
            "memory": self.memory,
            "events": self.events,
        }


def _row_json(row: Row, words: int | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": TITLES[row.name],
        "perplexity": row.tally.perplexity,
        **({} if words is None else {"perplexity_per_word": row.tally.per(words)}),
        **(_fitted_json(row) if row.fitted is not None else {}),
        "bits_per_character": row.tally.bits_per_character,
        "seconds": row.seconds,
        "seconds_per_token": row.seconds / max(row.tally.tokens, 1),
        "weights": dict(zip(row.experts, row.mean_weights.tolist(), strict=True)),
        "bands": {
            name: {"tokens": tally.tokens, "perplexity": tally.perplexity}
            for name, tally in zip(BANDS, row.bands, strict=True)
            if tally.tokens
        },
    }


def _fitted_json(row: Row) -> dict[str, float]:
    return {
        "fixed_perplexity": row.fitted_tally.perplexity,
        "hindsight_perplexity": row.in_hindsight(),
    }


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
