"""A memory moved: from one place onto shards, onto another number of them, and back."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import numpy as np

from unbounded.cluster import Call, Engine, Shard
from unbounded.cluster.connecting import NAME, described, opened
from unbounded.cluster.resharding import dealt, lengths, move
from unbounded.corpus import Block
from unbounded.errors import EngineError, SettingError
from unbounded.memory.backend import Backend
from unbounded.memory.local import BLOCK, LocalBackend
from unbounded.memory.memory import Memory
from unbounded.memory.opening import open as open_memory
from unbounded.memory.opening import recorded
from unbounded.memory.shards import LEARNED, ShardedBackend
from unbounded.presets import MemoryConfig
from unbounded.store import Store, TextLog
from unbounded.store.layout import read_about

SAMPLES = 64
"""Stretches of words that are compared in the end."""


def move_memory(
    source: Path,
    target: Path,
    engine: str,
    model: Path | None = None,
    show: Callable[[int], None] = lambda done: None,
) -> int:
    """Bring all that is left in one memory to another, on shards; how many entries there are.

    Begun again after it was stopped, it goes on where it was. What is moved is compared.
    """
    if source.absolute() == target.absolute():
        raise SettingError(f"{source} cannot be moved onto itself; give another folder")
    if (source / NAME).exists():
        return _between_shards(source, target, engine, show)
    store = Store(source, write=False)
    try:
        path = model or recorded(source, read_about(source)["model"]["path"])
        with open_memory(target, path, engine=engine) as memory:
            return _from_one_place(store, _backend(memory, ShardedBackend), show)
    finally:
        store.close()


_B = TypeVar("_B", bound=Backend)


def _backend(memory: Memory, kind: type[_B]) -> _B:
    assert isinstance(memory.backend, kind)
    return memory.backend


def _between_shards(source: Path, target: Path, engine: str, show: Callable[[int], None]) -> int:
    had = described(source)
    assert had is not None
    about = {name: had[name] for name in had if name != "shards"}
    old = opened(source, engine.partition("?")[0], about)
    new = opened(target, engine, about)
    kept = old.begin(0, Call(Shard.kept, LEARNED))()
    if kept is not None:
        new.begin(0, Call(Shard.keep, LEARNED, kept))()
    return move(old, new, show)


def to_one_place(
    source: Path,
    target: Path,
    engine: str,
    model: Path | None = None,
    show: Callable[[int], None] = lambda done: None,
) -> int:
    """Bring all entries of a memory on shards to one in one place; how many there are.

    They are read there, one document after the other, as if they had never been elsewhere; begun
    again after it was stopped, it goes on where it was.
    """
    had = described(source)
    if had is None:
        raise SettingError(f"{source} is not a memory on shards; give one that is")
    model = model or recorded(source, had["path"])
    shards = opened(source, engine.partition("?")[0], {k: had[k] for k in had if k != "shards"})
    with open_memory(target, model, config=MemoryConfig(**had["settings"])) as memory:
        local = _backend(memory, LocalBackend)
        moved = _into(local, shards, show)
        _compare(_gathered(local.store)[0], shards)
    return moved


def _into(local: LocalBackend, shards: Engine, show: Callable[[int], None]) -> int:
    there = {document.name: document.words for document in local.documents()}
    done = 0
    for name, length in sorted(lengths(shards).items()):
        done += min(there.get(name, 0), length)
        for first in range(there.get(name, 0), length, BLOCK):
            last = min(first + BLOCK, length)
            parts = [
                piece
                for part in shards.every(Call(Shard.entries, name, first, last))
                for piece in part
            ]
            for piece in dealt(parts, 0, 1):
                when = datetime.fromtimestamp(piece.time, UTC)
                block = Block(list(piece.words), (name,), np.zeros_like(piece.lines), piece.lines)
                for reading in local.read([block], when, whole=False):
                    done += len(reading.words)
            show(done)
    return done


def _from_one_place(store: TextLog, memory: ShardedBackend, show: Callable[[int], None]) -> int:
    words, lines = _gathered(store)
    done = 0
    for name, text in words.items():
        memory.take(name, text, np.concatenate(lines[name]))
        done += len(text)
        show(done)
    _compare(words, memory.engine)
    return done


def _gathered(store: TextLog) -> tuple[dict[str, list[str]], dict[str, list[np.ndarray]]]:
    """What is left of each document, and in which lines its words stand."""
    words: dict[str, list[str]] = {}
    lines: dict[str, list[np.ndarray]] = {}
    names = [document.name for document in store.catalog.documents]
    for block, left in store.blocks():
        every, at = block.words, 0
        for document, line, count in block.runs.tolist():
            stays = (np.flatnonzero(left[at : at + count]) + at).tolist()
            if stays:
                words.setdefault(names[document], []).extend(every[i] for i in stays)
                lines.setdefault(names[document], []).append(np.full(len(stays), line))
            at += count
    return words, lines


def _compare(words: dict[str, list[str]], shards: Engine) -> None:
    """Refuse to say that all was moved unless counts agree, and samples word by word."""
    has, random = lengths(shards), np.random.default_rng(0)
    for name in words.keys() | has.keys():
        here, there = len(words.get(name, [])), has.get(name, 0)
        if here != there:
            raise EngineError(
                f"{name!r} has {there:,} entries on shards and {here:,} in one place; move again"
            )
    names = sorted(words)
    for number in random.integers(0, max(len(names), 1), SAMPLES if names else 0).tolist():
        name = names[number]
        first = int(random.integers(0, len(words[name])))
        found: dict[int, str] = {}
        for part in shards.every(Call(Shard.words, name, first, first + 8)):
            found |= part
        if [found[at] for at in sorted(found)] != words[name][first : first + 8]:
            raise EngineError(
                f"{name!r} differs from position {first:,} on after it was moved; remove what it "
                "was moved to and move again"
            )
