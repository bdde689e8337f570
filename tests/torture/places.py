"""The places in which words lie, each filled, opened and asked in the same way."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.memory import texts
from tests.memory.failing import FailingDisk
from tests.memory.texts import open_toy, some_text, store_of
from unbounded.cluster import sharded
from unbounded.memory import Memory, checkpointing, local


@dataclass(frozen=True)
class Place:
    """A folder with a journal, and perhaps with shards that have folders in it."""

    name: str
    engine: str | None = None

    def _open(self, folder: Path) -> Memory:
        return open_toy(folder, disk=FailingDisk(), engine=self.engine, patience=0.5)

    def fill(self, folder: Path, seed: int) -> None:
        """Make it, with everything in it that it can have, as a crash leaves it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local, "BLOCK", 32)
            patch.setattr(sharded, "BATCH", 32)
            patch.setattr(checkpointing, "DELTA_WORDS", 100)
            patch.setattr(checkpointing, "SNAPSHOT_WORDS", 400)
            memory = self._open(folder)
            for number in range(3):
                memory.read(some_text(18, seed + number), f"doc{number}")
            memory.backend.saving.reap(wait=True)
            memory.backend.snapshot()
            memory.read(some_text(20, seed + 9), "last")
            memory.read("known1 known2", "tail")
            store_of(memory).close()
            if memory.backend.shards is not None:
                memory.backend.shards.close()

    def known(self, folder: Path, more: int | None = None) -> tuple[object, list[str]]:
        """Open it, write something if told to; what it knows, to the bit, and what it says."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharded, "BATCH", 32)
            with self._open(folder) as memory:
                if more is not None:
                    memory.read(some_text(3, more), f"more{more}")
                state = texts.state_of(memory)
                names = [one.name for one in memory.documents()]
                return (state, names), list(memory.events)


PLACES = [Place("folder"), Place("shards", "here://local?shards=2")]


def files_of(folder: Path) -> list[str]:
    """All files in it, by their names from there."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def fresh(source: Path, target: Path) -> Path:
    """A copy to be harmed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
