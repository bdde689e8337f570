"""One evaluation of a text: rows in one pass, weights online or fitted first, everything reported."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, final

import numpy as np

from unbounded.corpus import SENTENCE_END, Block
from unbounded.errors import CorpusError, SettingError
from unbounded.predict import OnlineModel
from unbounded.score.metrics import BANDS
from unbounded.score.progressive import Checkpoint, ScoredBlock, Watcher, progressive
from unbounded.score.rows import ROWS, TITLES, Row

MixtureName = Literal["online", "fixed"]


def make_rows(names: Sequence[str]) -> list[Row]:
    """Rows by name, in the order asked for."""
    for name in names:
        if name not in ROWS:
            raise SettingError(f"row {name!r} is unknown; choose from {', '.join(ROWS)}")
    if not names or len(set(names)) < len(names):
        raise SettingError(f"rows {', '.join(names)!r}; name each row once, and at least one")
    return [Row(name, ROWS[name]) for name in names]


def experts_of(rows: Iterable[Row]) -> list[str]:
    """Every expert that some row needs, once, in the order of `ROWS["full"]`."""
    needed = set(chain.from_iterable(row.experts for row in rows))
    return [name for name in ROWS["full"] if name in needed]


def fit_rows(model: OnlineModel, blocks: Iterable[Block], rows: Sequence[Row]) -> int:
    """Read blocks without scoring them, then fix each row's weights at the best for them."""
    tables: dict[str, list[np.ndarray]] = {row.name: [] for row in rows}
    tokens = 0
    for block in blocks:
        reading = model.read(block.words)
        tokens += len(reading.words)
        for row in rows:
            tables[row.name].append(row.columns(reading))
    if tokens == 0:
        raise CorpusError("the text to fit the weights on is empty; give more, or use --mixture online")
    for row in rows:
        row.fit(np.concatenate(tables[row.name]))
    return tokens


@final
class Gains:
    """Which words one row gained over another, and lost: nats a word type, summed."""

    def __init__(self, base: str, other: str) -> None:
        self.base = base
        self.other = other
        self._nats: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def __call__(self, block: ScoredBlock) -> None:
        """Add up a block."""
        gained = np.log(block.probs[self.other]) - np.log(block.probs[self.base])
        for word, nats in zip(block.reading.words, gained.tolist(), strict=True):
            self._nats[word] = self._nats.get(word, 0.0) + nats
            self._times[word] = self._times.get(word, 0) + 1

    def most(self, count: int, *, lost: bool = False) -> list[dict[str, Any]]:
        """The words with the largest sums; with `lost`, those with the most negative ones."""
        ordered = sorted(self._nats.items(), key=lambda item: item[1], reverse=not lost)
        return [
            {"word": word, "nats": nats, "times": self._times[word]}
            for word, nats in ordered[:count]
            if (nats < 0) == lost and nats != 0 and word != SENTENCE_END
        ]


@dataclass
class Evaluation:
    """Everything an evaluation found; `to_json` is what `--json` writes."""

    settings: dict[str, Any]
    vocabulary: int
    rows: list[Row]
    tokens: int = 0
    strangers: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    gains: Gains | None = None

    def run(
        self,
        model: OnlineModel,
        blocks: Iterable[Block],
        *,
        every: int,
        watchers: Sequence[Watcher] = (),
        show: Callable[[int, str], None] = lambda done, note: None,
    ) -> None:
        """Read the whole text; `show` hears how far it is."""
        names = [row.name for row in self.rows]
        if len(names) > 1:
            self.gains = Gains(names[0], names[-1])

        def watch(block: ScoredBlock) -> None:
            self.tokens += len(block.reading.words)
            self.strangers += int((block.reading.ids >= model.lm.base_size).sum())
            last = self.rows[-1]
            show(self.tokens, f"{last.name} {last.tally.perplexity:,.1f}")

        all_watchers = [watch, *([self.gains] if self.gains else []), *watchers]
        for checkpoint in progressive(model, blocks, self.rows, every=every, watchers=all_watchers):
            self.checkpoints.append(checkpoint)
        if self.tokens == 0:
            raise CorpusError("the text has no words to score; give one that has")

    def to_json(self) -> dict[str, Any]:
        """The figures, as the design lays them out."""
        return {
            "tokens": self.tokens,
            "oov_rate": self.strangers / self.tokens if self.tokens else math.nan,
            "vocabulary": self.vocabulary,
            "rows": [_row_json(row) for row in self.rows],
            **self.settings,
            "memory": self.memory,
            "events": self.events,
        }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": TITLES[row.name],
        "perplexity": row.tally.perplexity,
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


def cut_first(blocks: Iterator[Block], tokens: int) -> Iterator[Block]:
    """The blocks up to `tokens` words; leaves the iterator where the rest begins."""
    read = 0
    for block in blocks:
        yield block
        read += len(block.words)
        if read >= tokens:
            return
