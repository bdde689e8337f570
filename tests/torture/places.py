"""The places in which words lie, each filled, opened and asked in the same way."""

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import final

import pytest

from tests.memory import texts
from tests.memory.failing import FailingDisk
from tests.memory.texts import local_of, open_toy, some_text, store_of
from unbounded.cluster import sharded
from unbounded.memory import checkpointing, local


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


@final
class OnShards(Place):
    """A memory whose keys lie on two shards, with their folders."""

    name = "shards"

    def fill(self, folder: Path, seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharded, "BATCH", 32)
            patch.setattr(checkpointing, "DELTA_WORDS", 100)
            with open_toy(folder, engine="here://local?shards=2") as memory:
                for number in range(3):
                    memory.read(some_text(18, seed + number), f"doc{number}")

    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharded, "BATCH", 32)
            with open_toy(folder, engine="here://local") as memory:
                if more is not None:
                    memory.read(some_text(3, more), f"more{more}")
                state = texts.state_of(memory)
                names = [one.name for one in memory.documents()]
                return (state, names), list(memory.events)


PLACES: list[Place] = [Folder(), OnShards()]


def files_of(folder: Path) -> list[str]:
    """All files in it, by their names from there."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def fresh(source: Path, target: Path) -> Path:
    """A copy to be harmed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
