"""The places in which words lie, each filled, opened and asked in the same way."""

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import final

import numpy as np
import pytest

from tests.cluster.streams import WIDTH, WORDS, about, stream
from tests.memory import texts
from tests.memory.failing import FailingDisk
from tests.memory.texts import local_of, open_toy, some_text, store_of
from unbounded.cluster import Shard, shard
from unbounded.cluster.messages import Piece
from unbounded.cluster.queue import Queue
from unbounded.memory import checkpointing, local
from unbounded.store.disk import Disk, Lock, RealDisk


class Place(ABC):
    """A folder with a journal."""

    name: str

    @abstractmethod
    def fill(self, folder: Path, seed: int) -> None:
        """Make it, with everything in it that it can have."""

    @abstractmethod
    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        """Open it, write something if told to; what it knows, to the bit, and what it says."""


@final
class Folder(Place):
    """A memory in one folder."""

    name = "folder"

    def fill(self, folder: Path, seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local, "BLOCK", 32)
            patch.setattr(checkpointing, "DELTA_WORDS", 100)
            patch.setattr(checkpointing, "SNAPSHOT_WORDS", 400)
            memory = open_toy(folder, disk=FailingDisk())
            for number in range(3):
                memory.read(some_text(18, seed + number), f"doc{number}")
            store_of(memory).checkpoints.reap(wait=True)
            local_of(memory).snapshot()
            memory.read(some_text(20, seed + 9), "last")
            memory.read("known1 known2", "tail")
            store_of(memory).close()

    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        with open_toy(folder, disk=FailingDisk()) as memory:
            if more is not None:
                memory.read(some_text(3, more), f"more{more}")
            state = texts.state_of(memory)
            names = [one.name for one in memory.documents()]
            return (state, names), list(memory.events)


def piece(first: int, count: int, document: str, seed: int, step: int = 1) -> Piece:
    keys, ids = stream(400, seed)
    rows = slice(first, first + count * step, step)
    named = [WORDS[word] for word in ids[rows]]
    return Piece(document, first, step, 1.5, np.arange(400)[rows], named, keys[rows])


@final
class OneShard(Place):
    """A shard of a memory."""

    name = "shard"

    def fill(self, folder: Path, seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shard, "SNAPSHOT_ENTRIES", 60)
            one = Shard(str(folder), about(), patience=0.0)
            for first in range(0, 160, 20):
                one.append([piece(first, 20, "letter", seed), piece(first, 20, "diary", seed + 1)])
            one.keep("mind", b"whom to believe")
            one.close()

    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        one = Shard(str(folder), about(), patience=0.0)
        try:
            if more is not None:
                one.append([piece(0, 10, f"more{more}", more)])
            found = one.search(stream(5, seed=9)[0], 30, 0, 0)
            words = [
                sorted(one.words(name, 0, 999).items()) for name in sorted(one._contents._held)
            ]
            mind = one.kept("mind")
            state = [array.tobytes() for array in found[:3]], found.fresh, words, mind
            return state, list(one.events)
        finally:
            one.close()


def open_queue(folder: Path, disk: Disk, shards: int) -> Queue:
    folder.mkdir(exist_ok=True)
    lock = Lock(disk, folder)
    try:
        return Queue(folder, lock, {"model": "toy", "width": WIDTH, "shards": shards}, 10**6)
    except BaseException:
        lock.release()
        raise


@final
class OneQueue(Place):
    """What waits for shards that are unavailable."""

    name = "queue"

    def fill(self, folder: Path, seed: int) -> None:
        queue = open_queue(folder, RealDisk(), shards=2)
        for first in range(0, 80, 10):
            queue.put([piece(first, 5, "letter", seed, 2), piece(first + 1, 5, "letter", seed, 2)])
        queue.keep("mind", b"whom to believe")
        queue.close()

    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        queue = open_queue(folder, RealDisk(), shards=2)
        try:
            if more is not None:
                queue.put([piece(0, 10, f"more{more}", more, 2)])
            waits = [
                (one.document, one.first, list(one.words), one.keys.tobytes())
                for one in queue.every()
            ]
            return (waits, queue.kept("mind")), list(queue.events)
        finally:
            queue.close()


PLACES: list[Place] = [Folder(), OneShard(), OneQueue()]


def files_of(folder: Path) -> list[str]:
    """All files in it, by their names from there."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def fresh(source: Path, target: Path) -> Path:
    """A copy to be harmed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
