"""What shards hold of a document, gathered in its order: words, lines and times, without keys."""

from collections.abc import Iterator

from unbounded.cluster.engine import Engine
from unbounded.cluster.messages import Piece
from unbounded.cluster.resharding import AT_ONCE, dealt


def gathered(engine: Engine, document: str, length: int) -> Iterator[Piece]:
    """A document of so many words, some of them at a time; what was read at one time together."""
    for first in range(0, length, AT_ONCE):
        last = min(first + AT_ONCE, length)
        parts = [p for part in engine.every("texts", document, first, last) for p in part]
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
