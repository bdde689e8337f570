"""A memory moved onto shards: from one place, or from another number of shards."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from unbounded.cluster.moving import lengths, move
from unbounded.cluster.opening import NAME, described, opened
from unbounded.errors import EngineError, SettingError
from unbounded.keep.spread import SpreadMemory, open_spread
from unbounded.store import Store
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
        path = model or read_about(source)["model"]["path"]
        with open_spread(target, engine, path) as memory:
            return _from_one_place(store, memory, show)
    finally:
        store.close()


def _between_shards(source: Path, target: Path, engine: str, show: Callable[[int], None]) -> int:
    had = described(source)
    assert had is not None
    about = {name: had[name] for name in had if name != "shards"}
    old = opened(source, engine.partition("?")[0], about)
    new = opened(target, engine, about)
    kept = old.begin(0, "kept", "mind")()
    if kept is not None:
        new.begin(0, "keep", "mind", kept)()
    return move(old, new, show)


def _from_one_place(store: Store, memory: SpreadMemory, show: Callable[[int], None]) -> int:
    words: dict[str, list[str]] = {}
    lines: dict[str, list[np.ndarray]] = {}
    names = [document.name for document in store.ledger.documents]
    for block, left in store.blocks():
        every, at = block.words, 0
        for document, line, count in block.runs.tolist():
            stays = np.flatnonzero(left[at : at + count]) + at
            words.setdefault(names[document], []).extend(every[i] for i in stays)
            lines.setdefault(names[document], []).append(np.full(len(stays), line))
            at += count
    done = 0
    for name, text in words.items():
        if text:
            memory.take(name, text, np.concatenate(lines[name]))
        done += len(text)
        show(done)
    _compare(words, memory)
    return done


def _compare(words: dict[str, list[str]], memory: SpreadMemory) -> None:
    has, random = lengths(memory.engine), np.random.default_rng(0)
    for name, text in words.items():
        if has.get(name, 0) != len(text):
            raise EngineError(
                f"{name!r} has {has.get(name, 0):,} entries where it was moved to, "
                f"{len(text):,} where it was; move again"
            )
    names = [name for name, text in words.items() if text]
    for number in random.integers(0, max(len(names), 1), SAMPLES if names else 0).tolist():
        name = names[number]
        first = int(random.integers(0, len(words[name])))
        if memory.memory.words_of(name, first, first + 8) != words[name][first : first + 8]:
            raise EngineError(
                f"{name!r} differs from position {first:,} on after it was moved; remove what it "
                "was moved to and move again"
            )
