"""Which words are to be forgotten: a document, what is older than a day, lines, the last ones."""

import re
from datetime import datetime

import numpy as np

from unbounded.cluster import Engine
from unbounded.cluster.gathering import lines_of
from unbounded.cluster.resharding import lengths
from unbounded.corpus import Splitter
from unbounded.errors import SettingError
from unbounded.memory.matching import matched
from unbounded.store import Store
from unbounded.store.catalog import merged
from unbounded.store.records import Ranges


def chosen(
    store: Store,
    splitter: Splitter,
    *,
    document: str | None = None,
    before: datetime | None = None,
    matching: str | None = None,
    last: int | None = None,
) -> Ranges:
    """The positions that one of the four ways to say it names, those already gone left out."""
    _check_one(document, before, matching, last)
    if document is not None:
        ranges = _document(store, document)
    elif before is not None:
        ranges = _before(store, before)
    elif matching is not None:
        ranges = _matching(store, matching, splitter)
    else:
        assert last is not None
        ranges = _last(store, last)
    return _still_there(store, ranges)


def chosen_documents(
    engine: Engine,
    splitter: Splitter,
    *,
    document: str | None = None,
    before: datetime | None = None,
    matching: str | None = None,
    last: int | None = None,
) -> list[str]:
    """The documents on shards that one of three ways to say it names.

    A document is there as a whole or not at all: what was read in it depends on its beginning.
    """
    _check_one(document, before, matching, last)
    if document is not None:
        return [document]
    if before is not None:
        latest: dict[str, float] = {}
        for part in engine.every("latest"):
            for name, time in part.items():
                latest[name] = max(latest.get(name, 0.0), time)
        return sorted(name for name, time in latest.items() if time < before.timestamp())
    if matching is not None:
        lines = (
            (name, splitter.plain(line))
            for name, length in lengths(engine).items()
            for line in lines_of(engine, name, length)
        )
        return sorted(set(matched(matching, lines)))
    raise SettingError(
        "words that many read into shards have no common order, so there are no last ones; give "
        "--document, --before or --matching"
    )


def _check_one(*ways: object) -> None:
    given = [value for value in ways if value is not None]
    if len(given) != 1:
        raise SettingError(
            f"{len(given)} ways to say what to forget were given; give one of document, before, "
            "matching and last"
        )


def _document(store: Store, name: str) -> Ranges:
    """All words read under a name; a file's later documents are called NAME#2, NAME#3, …"""
    parts = re.compile(re.escape(name) + r"(#\d+)?")
    numbers = [i for i, one in enumerate(store.catalog.documents) if parts.fullmatch(one.name)]
    if not numbers:
        raise SettingError(
            f"{store.folder} never read a document named {name!r}; give a name as it was read"
        )
    lines = store.catalog.lines()
    mine = np.isin(lines.documents, numbers)
    return _ranges(lines.starts[mine], lines.lengths[mine])


def _before(store: Store, when: datetime) -> Ranges:
    first, times = store.catalog.times()
    ends = np.append(first, store.catalog.positions)[1:]
    old = times < when.timestamp()
    return _ranges(first[old], (ends - first)[old])


def _matching(store: Store, pattern: str, splitter: Splitter) -> Ranges:
    """Whole lines in whose plain text the pattern is found; case is ignored."""
    lines = store.catalog.lines()
    words = [word for block, _ in store.blocks() for word in block.words]
    every = enumerate(zip(lines.starts.tolist(), lines.lengths.tolist(), strict=True))
    texts = ((i, splitter.plain(words[at : at + length])) for i, (at, length) in every)
    found = list(matched(pattern, texts))
    return _ranges(lines.starts[found], lines.lengths[found])


def _last(store: Store, count: int) -> Ranges:
    if count < 1:
        raise SettingError(f"the last {count} words; it must be at least 1")
    catalog = store.catalog
    if not catalog.entries:
        return []
    first = max(catalog.entries - count, 0)
    return [(int(catalog.positions_of(np.array([first]))[0]), catalog.positions)]


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> Ranges:
    return list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))


def _still_there(store: Store, ranges: Ranges) -> Ranges:
    """What of these ranges is left, in order."""
    out: Ranges = []
    for start, stop in merged(ranges).tolist():
        left = np.concatenate([[False], store.catalog.kept(start, stop - start), [False]])
        edges = (start + np.flatnonzero(left[1:] != left[:-1])).tolist()
        out += zip(edges[::2], edges[1::2], strict=True)
    return out
