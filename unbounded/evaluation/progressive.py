"""Progressive validation: every word is predicted, then read; all rows share one search."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from unbounded.corpus import Block, Tokenizer
from unbounded.evaluation.metrics import FrequencyBuckets
from unbounded.evaluation.rows import Row
from unbounded.model import OnlineModel, Reading
from unbounded.types import Ids, Probs, Table


@dataclass(frozen=True)
class Point:
    """One row at a checkpoint: so far, since the last checkpoint, and the weights now."""

    perplexity: float
    recent_perplexity: float
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Every row after so many words."""

    tokens: int
    points: dict[str, Point]


@dataclass(frozen=True)
class ScoredBlock:
    """A block with what every row gave its words."""

    reading: Reading
    bands: Ids
    probs: dict[str, Probs]
    weights: dict[str, Table]
    row_experts: dict[str, tuple[str, ...]]


Watcher = Callable[[ScoredBlock], None]
"""Told of each block once it is scored."""


def progressive(
    model: OnlineModel,
    blocks: Iterable[Block],
    rows: Sequence[Row],
    *,
    every: int,
    watchers: Sequence[Watcher] = (),
    buckets: FrequencyBuckets | None = None,
    characters: Callable[[Sequence[str]], int] = Tokenizer().characters,
) -> Iterator[Checkpoint]:
    """Read the blocks, each word predicted before it is learned; yield every `every` words.

    A checkpoint waits for the end of its block; the last one is always at the last word. A row's
    time is that of its own experts, of its mixture and, if it uses it, of the network, as if it had
    been alone.
    A model that has read before brings the `buckets` that counted what it read.
    """
    buckets = buckets or FrequencyBuckets(model.lm.base_size)
    experts = {row.name: row.experts for row in rows}
    tokens, shown, due = 0, 0, every
    for block in blocks:
        reading = model.read(block.words)
        bands = buckets.bands(reading.ids)
        length = characters(reading.words)
        probs: dict[str, Probs] = {}
        weights: dict[str, Table] = {}
        for row in rows:
            began = time.perf_counter()
            columns = row.columns(reading)
            scored = row.score(reading, columns)
            mixing = time.perf_counter() - began
            row.seconds += mixing + sum(reading.seconds[name] for name in row.parts)
            row.compare(columns)
            row.add(scored.prob, scored.weights, length, bands)
            probs[row.name], weights[row.name] = scored.prob, scored.weights
        for watcher in watchers:
            watcher(ScoredBlock(reading, bands, probs, weights, experts))
        tokens += len(reading.words)
        if tokens >= due:
            yield _checkpoint(tokens, rows)
            shown, due = tokens, tokens - tokens % every + every
    if shown < tokens:
        yield _checkpoint(tokens, rows)


def _checkpoint(tokens: int, rows: Sequence[Row]) -> Checkpoint:
    points: dict[str, Point] = {}
    for row in rows:
        weights = tuple(row.mixture.weights.tolist())
        points[row.name] = Point(row.tally.perplexity, row.recent.perplexity, weights)
        row.start_stretch()
    return Checkpoint(tokens, points)
