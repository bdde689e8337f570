"""Progressive validation: every word is predicted, then read; rows share one pass and one search."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from unbounded.corpus import Block
from unbounded.predict import OnlineModel, Reading
from unbounded.score.metrics import Banding, characters
from unbounded.score.rows import Row
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
) -> Iterator[Checkpoint]:
    """Read the blocks, each word predicted before it is learned; yield every `every` words.

    A row's time is that of the network, of its own experts and of its mixture, as if it had been
    alone. The last checkpoint is always at the last word.
    """
    banding = Banding(model.lm.base_size)
    tokens, due = 0, every
    last = {row.name: (0, 0.0) for row in rows}
    for block in blocks:
        reading = model.read(block.words)
        bands = banding.bands(reading.ids)
        length = characters(reading.words)
        probs: dict[str, Probs] = {}
        weights: dict[str, Table] = {}
        for row in rows:
            began = time.perf_counter()
            scored = row.mixture.score(row.columns(reading))
            mixing = time.perf_counter() - began
            row.seconds += mixing + sum(
                reading.seconds[name] for name in ("network", *row.experts)
            )
            row.add(scored.prob, scored.weights, length, bands)
            probs[row.name], weights[row.name] = scored.prob, scored.weights
        experts = {row.name: row.experts for row in rows}
        for watcher in watchers:
            watcher(ScoredBlock(reading, bands, probs, weights, experts))
        tokens += len(reading.words)
        if tokens >= due:
            yield _checkpoint(tokens, rows, last)
            due = tokens - tokens % every + every
    if any(last[row.name][0] < row.tally.tokens for row in rows):
        yield _checkpoint(tokens, rows, last)


def _checkpoint(
    tokens: int, rows: Sequence[Row], last: dict[str, tuple[int, float]]
) -> Checkpoint:
    points: dict[str, Point] = {}
    for row in rows:
        before_tokens, before_nats = last[row.name]
        stretch = row.tally.tokens - before_tokens
        recent = math.exp((row.tally.nats - before_nats) / stretch)
        points[row.name] = Point(row.tally.perplexity, recent, tuple(row.mixture.weights.tolist()))
        last[row.name] = (row.tally.tokens, row.tally.nats)
    return Checkpoint(tokens, points)
