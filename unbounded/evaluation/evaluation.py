"""One pass over a text: every word is predicted, then read; all rows share one search.

What each expert and each row gave every word can be written down: as JSON lines, or Parquet.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.corpus import Block, Splitter, Tokenizer
from unbounded.errors import CorpusError, needing
from unbounded.evaluation.metrics import BANDS, FIRST_NEW_BAND, FrequencyBuckets, Tally, surprise
from unbounded.evaluation.rows import TITLES, Gains, Row, ScoredBlock, Watcher, WordCount
from unbounded.files import write_atomically
from unbounded.model import OnlineModel
from unbounded.shapes import Float
from unbounded.types import Probs

FIRST = 100
"""Words after which the first point is."""

STEPS = 4
"""Points from some words to twice as many."""


@dataclass(frozen=True)
class Point:
    """One row at a checkpoint: so far, of late, and its weights."""

    perplexity: float
    recent_perplexity: float
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Every row after so many words."""

    tokens: int
    points: dict[str, Point]


@dataclass(frozen=True)
class _Mark:
    """After so many words: of each row the nats, then the sum of each weight."""

    tokens: int
    sums: dict[str, Float[np.ndarray, " m"]]


@final
class Curve:
    """Told of each block, it knows the points, however the text was cut into blocks."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._now = _Mark(0, {row.name: np.zeros(1 + len(row.experts)) for row in rows})
        self._marks = [self._now]
        self._step = -STEPS

    def __call__(self, block: ScoredBlock) -> None:
        """Take in some words."""
        before, tokens = self._now, len(block.reading.words)
        if not tokens:
            return
        sums = {
            name: np.cumsum(np.column_stack([surprise(prob), block.weights[name]]), axis=0)
            + before.sums[name]
            for name, prob in block.probs.items()
        }
        while (due := round(FIRST * 2 ** (self._step / STEPS)) - before.tokens) <= tokens:
            here = {name: rows[due - 1] for name, rows in sums.items()}
            self._marks.append(_Mark(before.tokens + due, here))
            self._step += 1
        self._now = _Mark(before.tokens + tokens, {name: rows[-1] for name, rows in sums.items()})

    def points(self) -> list[Checkpoint]:
        """From `FIRST` words on; of a shorter text one, of all of it."""
        marks = [mark for mark in self._marks if mark.tokens >= FIRST]
        if self._now.tokens and (not marks or marks[-1].tokens < self._now.tokens):
            marks.append(self._now)
        return [Checkpoint(mark.tokens, self._points_at(mark)) for mark in marks]

    def _points_at(self, mark: _Mark) -> dict[str, Point]:
        half = mark.tokens / 2 if mark.tokens >= FIRST else 0
        since = next(one for one in reversed(self._marks) if one.tokens <= half)
        points = {}
        for name, sums in mark.sums.items():
            recent = (sums - since.sums[name]) / (mark.tokens - since.tokens)
            so_far = _perplexity(float(sums[0]) / mark.tokens)
            weights = tuple(recent[1:].tolist())
            points[name] = Point(so_far, _perplexity(float(recent[0])), weights)
        return points


def _perplexity(nats: float) -> float:
    return math.exp(nats) if nats < 709 else math.inf


@dataclass
class Evaluation:
    """Everything an evaluation found; `to_json` is what `--json` writes."""

    settings: dict[str, Any]
    vocabulary: int
    rows: list[Row]
    tokens: int = 0
    oov: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)
    """At equal distances; `recent` is since the one before."""
    curve: list[Checkpoint] = field(default_factory=list)
    """At equal ratios; `recent` is the later half of all words so far."""
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
        """Read the blocks, each word predicted before it is learned; `show` hears how far it is.

        A checkpoint every `every` words waits for the end of its block; the last one is always at
        the last word. A model that has read before brings the `buckets` that counted what it read.
        """
        first, last, pieces = self.rows[0], self.rows[-1], not self.splitter.parted
        counted, curve = WordCount(self.splitter), Curve(self.rows)
        told: list[Watcher] = [curve, *([counted] if pieces else []), *watchers]
        if first is not last:
            self.gains = Gains(first.name, last.name, self.splitter)
            told.append(self.gains)
        buckets = buckets or FrequencyBuckets(model.lm.base_size)
        experts, due = {row.name: row.experts for row in self.rows}, every
        for block in blocks:
            reading = model.read(block.words, overlap=False)
            bands, length = buckets.bands(reading.ids), self.splitter.characters(reading.words)
            scored = {row.name: row.take(reading, bands, length) for row in self.rows}
            probs = {name: one.prob for name, one in scored.items()}
            weights = {name: one.weights for name, one in scored.items()}
            for watcher in told:
                watcher(ScoredBlock(reading, bands, probs, weights, experts))
            self.tokens += len(reading.words)
            self.oov += int((reading.ids >= model.lm.base_size).sum())
            show(self.tokens, f"{last.name} {last.tally.perplexity:,.1f}")
            if self.tokens >= due:
                self._mark()
                due = self.tokens - self.tokens % every + every
        if self.tokens == 0:
            raise CorpusError("there are no words left to score; give a longer text")
        if not self.checkpoints or self.checkpoints[-1].tokens < self.tokens:
            self._mark()
        self.curve = curve.points()
        self.words = counted.total if pieces else None

    def _mark(self) -> None:
        points: dict[str, Point] = {}
        for row in self.rows:
            weights = tuple(row.mixture.weights.tolist())
            points[row.name] = Point(row.tally.perplexity, row.recent.perplexity, weights)
            row.recent = Tally()
        self.checkpoints.append(Checkpoint(self.tokens, points))

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
    fitted = {}
    if row.fitted is not None:
        fitted["fixed_perplexity"] = row.fitted_tally.perplexity
        fitted["hindsight_perplexity"] = row.in_hindsight()
    return {
        "name": row.name,
        "title": TITLES[row.name],
        "perplexity": row.tally.perplexity,
        **({} if words is None else {"perplexity_per_word": row.tally.per(words)}),
        **fitted,
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


@contextmanager
def per_token_writer(path: Path) -> Iterator[Watcher]:
    """Write a line or a Parquet row a word (by the file's suffix); complete only when closed.

    `-` is lines on standard output.

    Columns: `word`, `new` (not a word of the network), `expert.NAME` and `row.NAME` in nats, and
    `weight.ROW.EXPERT`. A word that an expert holds for impossible has no nats there (null).
    """
    if str(path) == "-":
        yield partial(_write_json_lines, sys.stdout)
        return
    opened = _parquet if path.suffix.lower() == ".parquet" else _json_lines
    with write_atomically(path) as aside, opened(aside) as watcher:
        yield watcher


def _numbers(block: ScoredBlock) -> dict[str, Probs]:
    """The columns of numbers; not a number where there is none."""
    reading = block.reading
    columns = {
        f"expert.{name}": _nats(reading.table[:, i]) for i, name in enumerate(reading.experts)
    }
    for name, probs in block.probs.items():
        columns[f"row.{name}"] = _nats(probs)
        for i, expert in enumerate(block.row_experts[name]):
            columns[f"weight.{name}.{expert}"] = block.weights[name][:, i].round(6)
    return columns


def _new(block: ScoredBlock) -> list[bool]:
    """Whether each word is none of the network's."""
    new: list[bool] = (block.bands >= FIRST_NEW_BAND).tolist()
    return new


def _nats(probs: Probs) -> Probs:
    nats = surprise(probs)
    # Adding zero turns the -0.0 of a certain word into 0.0.
    return np.where(np.isfinite(nats), nats, np.nan).round(6) + 0.0


@contextmanager
def _json_lines(path: Path) -> Iterator[Watcher]:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield partial(_write_json_lines, file)


def _write_json_lines(file: Any, block: ScoredBlock) -> None:
    columns = {
        "word": [json.dumps(word, ensure_ascii=False) for word in block.reading.words],
        "new": _texts(_new(block)),
    }
    columns |= {name: _texts(values.tolist()) for name, values in _numbers(block).items()}
    line = "{" + ", ".join(f'"{name}": %s' for name in columns) + "}\n"
    file.writelines(line % values for values in zip(*columns.values(), strict=True))


def _texts(values: list[Any]) -> list[str]:
    """Each number or truth as JSON; a column at once is faster than word by word."""
    return json.dumps(values)[1:-1].replace("NaN", "null").split(", ") if values else []


@contextmanager
def _parquet(path: Path) -> Iterator[Watcher]:
    with needing("pyarrow, which writes Parquet,", "parquet"):
        import pyarrow
        import pyarrow.parquet
    writer: Any = None
    with ExitStack() as stack:

        def write(words: Sequence[str], new: list[bool], numbers: dict[str, Probs]) -> None:
            nonlocal writer
            columns = {
                "word": pyarrow.array(words, pyarrow.string()),
                "new": pyarrow.array(new, pyarrow.bool_()),
                # As pandas does: what is not a number becomes null.
                **{name: pyarrow.array(nats, from_pandas=True) for name, nats in numbers.items()},
            }
            table = pyarrow.table(columns)
            if writer is None:
                opened = pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd")
                writer = stack.enter_context(opened)
            writer.write_table(table)

        yield lambda block: write(block.reading.words, _new(block), _numbers(block))
        if writer is None:
            write([], [], {})
