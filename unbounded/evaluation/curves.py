"""How perplexity and weights moved while a text was read, at equal ratios of words.

A point is of the later half of all words so far: the first are as smooth as the last, and a text
that ends anywhere ends in no scrap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.evaluation.metrics import surprise
from unbounded.evaluation.rows import Row, ScoredBlock
from unbounded.shapes import Float

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
        while (due := self._due() - before.tokens) <= tokens:
            here = {name: rows[due - 1] for name, rows in sums.items()}
            self._marks.append(_Mark(before.tokens + due, here))
            self._step += 1
        self._now = _Mark(before.tokens + tokens, {name: rows[-1] for name, rows in sums.items()})

    def _due(self) -> int:
        return round(FIRST * 2 ** (self._step / STEPS))

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
