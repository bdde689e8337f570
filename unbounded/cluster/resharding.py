"""From some shards to others: document by document, resumable, verified."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unbounded.cluster.engine import Call, Engine
from unbounded.cluster.messages import Piece
from unbounded.cluster.shard import Shard
from unbounded.errors import EngineError

AT_ONCE = 4096
"""Positions of a document that travel together."""

SAMPLES = 64
"""Stretches of words that are compared in the end."""


def move(source: Engine, target: Engine, show: Callable[[int], None] = lambda done: None) -> int:
    """Bring all entries over; how many there are. What is there already is not sent again."""
    done = 0
    for document, length in sorted(lengths(source).items()):
        held = target.every(Call(Shard.held, document))
        there = min(each * target.count + shard for shard, each in enumerate(held))
        start = there // AT_ONCE * AT_ONCE
        done += min(start, length)
        for first in range(start, length, AT_ONCE):
            last = min(first + AT_ONCE, length)
            pieces = [
                p for part in source.every(Call(Shard.entries, document, first, last)) for p in part
            ]
            begun = [
                target.begin(shard, Call(Shard.append, dealt(pieces, shard, target.count)))
                for shard in range(target.count)
            ]
            for pending in begun:
                pending()
            done += last - first
            show(done)
    verify(source, target)
    return done


def lengths(engine: Engine) -> dict[str, int]:
    """How many entries of each document all shards have together."""
    total: dict[str, int] = {}
    for stats in engine.every(Call(Shard.stats)):
        for document, count in stats["documents"].items():
            total[document] = total.get(document, 0) + count
    return total


def dealt(pieces: Sequence[Piece], shard: int, shards: int) -> list[Piece]:
    """Of entries of one document, those that belong to a shard, in their order."""
    if not pieces:
        return []
    counts = [len(piece.words) for piece in pieces]
    at = np.concatenate(
        [p.first + p.step * np.arange(n) for p, n in zip(pieces, counts, strict=True)]
    )
    order = np.argsort(at)
    order = order[at[order] % shards == shard]
    words = [word for piece in pieces for word in piece.words]
    lines, keys = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("lines", "keys"))
    times = np.repeat([piece.time for piece in pieces], counts)
    # What came at one time stays together.
    cuts = np.flatnonzero(np.diff(times[order])) + 1
    return [
        Piece(
            pieces[0].document,
            int(at[rows[0]]),
            shards,
            float(times[rows[0]]),
            lines[rows],
            [words[row] for row in rows],
            keys[rows],
        )
        for rows in np.split(order, cuts)
        if len(rows)
    ]


def verify(source: Engine, target: Engine) -> None:
    """Refuse to say that all is there unless counts agree, and samples word by word."""
    had, has = lengths(source), lengths(target)
    for document, length in had.items():
        if has.get(document, 0) != length:
            raise EngineError(
                f"{document!r} has {has.get(document, 0):,} entries where it was moved to, "
                f"{length:,} where it was; move again"
            )
    random = np.random.default_rng(0)
    names = sorted(had)
    for number in random.integers(0, max(len(names), 1), SAMPLES if names else 0).tolist():
        name = names[number]
        first = int(random.integers(0, had[name]))
        one, other = (_sample(engine, name, first) for engine in (source, target))
        if one != other:
            raise EngineError(
                f"{name!r} differs from position {first:,} on after it was moved; remove what it "
                "was moved to and move again"
            )


def _sample(engine: Engine, document: str, first: int) -> dict[int, tuple[str, bytes]]:
    parts = engine.every(Call(Shard.entries, document, first, first + 8))
    return {
        piece.first + i * piece.step: (word, piece.keys[i].tobytes())
        for part in parts
        for piece in part
        for i, word in enumerate(piece.words)
    }


def gathered(engine: Engine, document: str, length: int) -> Iterator[Piece]:
    """A document of so many words, some of them at a time; what was read at one time together."""
    for first in range(0, length, AT_ONCE):
        last = min(first + AT_ONCE, length)
        parts = [p for part in engine.every(Call(Shard.texts, document, first, last)) for p in part]
        yield from dealt(parts, 0, 1)


def lines_of(engine: Engine, document: str, length: int) -> Iterator[list[str]]:
    """The words of each line of a document."""
    words: list[str] = []
    now: int | None = None
    for piece in gathered(engine, document, length):
        for word, line in zip(piece.words, piece.lines.tolist(), strict=True):
            if line != now and words:
                yield words
                words = []
            words.append(word)
            now = line
    if words:
        yield words
