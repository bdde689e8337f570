"""After a crash little is read again, whatever was being set aside; reading never waits for it."""

import errno
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.memory import texts
from tests.memory.failing import FailingDisk
from tests.memory.texts import open_toy, some_text, store_of
from unbounded import presets
from unbounded.datastore import IVFPQ, Auto
from unbounded.errors import StoreError
from unbounded.memory import Memory, checkpointing, local
from unbounded.presets import MemoryConfig
from unbounded.store import records
from unbounded.store.deltas import read_deltas
from unbounded.store.disk import Disk, RealDisk
from unbounded.store.layout import delta_paths, snapshot_paths

CODED = MemoryConfig(index="auto", k=8, window=16)
BLOCK, STEP = 32, 128


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and snapshots so often that a short text has many; codes after 256 words."""
    monkeypatch.setattr(local, "BLOCK", BLOCK)
    monkeypatch.setattr(local, "SYNCED", 100)
    monkeypatch.setattr(checkpointing, "DELTA_WORDS", STEP)
    monkeypatch.setattr(checkpointing, "SNAPSHOT_WORDS", 600)
    monkeypatch.setitem(presets.INDEXES, "auto", partial(Auto, exact=256))
    coded = partial(IVFPQ, lists=4, probes=2, code_size=5, train_at=256)
    monkeypatch.setitem(presets.INDEXES, "ivfpq", coded)


def state_of(memory: Memory) -> dict[str, bytes]:
    """All but how long the index once took to switch to codes."""
    return {n: part for n, part in texts.state_of(memory).items() if not n.endswith("header")}


def opened(folder: Path, **more: Any) -> Memory:
    """On a disk that is not waited for: nobody cuts the power here."""
    return open_toy(folder, **{"disk": FailingDisk(), **more})


def crash(memory: Memory) -> None:
    """What a crash leaves, but for what was being written just then."""
    memory.backend.saving.reap(wait=True)
    store_of(memory).close()


def crashed(folder: Path, lines: int) -> dict[str, bytes]:
    """A memory that read so many lines, as a crash left it; what it knew."""
    memory = opened(folder, config=CODED)
    memory.read(some_text(lines), "a")
    known = state_of(memory)
    crash(memory)
    return known


def assert_little_is_read_again(folder: Path, known: dict[str, bytes]) -> None:
    with opened(folder, config=CODED) as memory:
        assert state_of(memory) == known
        assert memory.backend.saving.since < STEP + BLOCK
        assert memory.check(deep=True) == []


@pytest.mark.parametrize("index", ["auto", "flat", "ivfpq"])
def test_wherever_it_crashes_at_most_a_step_is_read_again(tmp_path: Path, index: str) -> None:
    settings = MemoryConfig(index=index, k=8, window=16)
    parts = [some_text(16, seed) for seed in range(14)]
    with opened(tmp_path / "straight", config=settings) as straight:
        expected = [straight.read(text, "a").prob.tolist() for text in parts]
        whole = state_of(straight)
    memory = opened(tmp_path / "m", config=settings)
    again = []
    for text, probs in zip(parts, expected, strict=True):
        assert memory.read(text, "a").prob.tolist() == probs
        crash(memory)
        memory = opened(tmp_path / "m", config=settings)
        again.append(memory.backend.saving.since)
    assert state_of(memory) == whole
    assert memory.check(deep=True) == []
    assert memory.events == []
    assert len(memory) > 10 * STEP
    assert max(again) < STEP + BLOCK
    if index != "ivfpq":
        # Most of it came by steps: snapshots are as rare as they were meant to be.
        assert len(memory) / 600 - 2 < snapshots_made(tmp_path / "m") <= len(memory) / 600 + 2
    memory.close()


def snapshots_made(folder: Path) -> float:
    """About how many there were, by how far the two that are left are apart."""
    newest, other = (int(path.name.split("-")[2]) for path in snapshot_paths(folder, 1))
    return newest / (newest - other)


def test_steps_lead_on_from_an_older_snapshot_if_the_newest_is_damaged(tmp_path: Path) -> None:
    known = crashed(tmp_path / "m", 400)
    assert len(delta_paths(tmp_path / "m", 1)) == 2
    newest = snapshot_paths(tmp_path / "m", 1)[0]
    (newest / "manifest.json").write_text("{}")
    with opened(tmp_path / "m", config=CODED) as memory:
        assert memory.backend.saving.since < STEP + BLOCK
        assert state_of(memory) == known
        memory.read(some_text(30, 1), "b")
        known = state_of(memory)
    with opened(tmp_path / "m", config=CODED) as memory:
        assert state_of(memory) == known


def test_a_step_that_is_torn_anywhere_is_done_without(tmp_path: Path) -> None:
    known = crashed(tmp_path / "m", 70)
    path = delta_paths(tmp_path / "m", 1)[-1]
    whole = path.read_bytes()
    for end in [0, 5, 18, 30, 45, *np.linspace(60, len(whole) - 1, 12).astype(int).tolist()]:
        path.write_bytes(whole[:end])
        with opened(tmp_path / "m", config=CODED, mode="read") as reader:
            assert state_of(reader) == known
            assert reader.check() == []
    with opened(tmp_path / "m", config=CODED) as memory:
        memory.read(some_text(40, 1), "b")
        known = state_of(memory)
        crash(memory)
    assert_little_is_read_again(tmp_path / "m", known)


def test_a_flipped_bit_in_a_step_is_named_and_never_taken(tmp_path: Path) -> None:
    known = crashed(tmp_path / "m", 90)
    path = delta_paths(tmp_path / "m", 1)[-1]
    whole = path.read_bytes()
    # The file's beginning, the first record's length, checksum, kind, number, and all over.
    places = [*range(3, 48, 3), *np.linspace(48, len(whole) - 1, 20).astype(int).tolist()]
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with opened(tmp_path / "m", config=CODED, mode="read") as reader:
            assert state_of(reader) == known
            (finding,) = reader.check()
            assert finding.where == str(path)
            assert "remove that file" in finding.advice
    path.unlink()
    with opened(tmp_path / "m", config=CODED, mode="read") as reader:
        assert (state_of(reader), reader.check()) == (known, [])


class SlowDisk(Disk):
    """A disk that does not go on with a snapshot before it is told to."""

    def __init__(self) -> None:
        self.real, self.go_on, self.waits = RealDisk(), threading.Event(), threading.Event()

    def open(self, path: Path, flags: int) -> int:
        if path.name == "arrays.npy":
            self.waits.set()
            assert self.go_on.wait(60)
        return self.real.open(path, flags)

    def write(self, file: int, data: bytes | memoryview) -> int:
        return self.real.write(file, data)

    def sync(self, file: int) -> None:
        self.real.sync(file)

    def replace(self, source: Path, target: Path) -> None:
        self.real.replace(source, target)


def test_neither_writer_nor_readers_wait_for_a_snapshot(tmp_path: Path) -> None:
    disk = SlowDisk()
    with opened(tmp_path / "m", config=CODED, disk=disk) as memory:
        disk.go_on.set()
        memory.read(some_text(60), "a")
        memory.backend.saving.reap(wait=True)
        memory.backend.snapshot()
        disk.go_on.clear()
        disk.waits.clear()
        memory.read(some_text(150, 1), "b")
        assert disk.waits.wait(60)
        assert memory.backend.saving.busy
        # It was begun long ago, and what came since is there all the same.
        with opened(tmp_path / "m", config=CODED, mode="read") as reader:
            assert state_of(reader) == state_of(memory)
            assert reader.backend.saving.since < STEP + BLOCK
            memory.read("known1 known2", "c")
            assert reader.refresh() == 3
            assert reader.predict("known1").words == memory.predict("known1").words
        assert memory.backend.saving.busy
        disk.go_on.set()
        known = state_of(memory)
    assert_little_is_read_again(tmp_path / "m", known)


def test_what_is_forgotten_or_compacted_meanwhile_is_in_no_snapshot_that_was_begun(
    tmp_path: Path,
) -> None:
    disk = SlowDisk()
    disk.go_on.set()
    with opened(tmp_path / "m", config=CODED, disk=disk) as memory:
        memory.read(some_text(60), "a")
        memory.backend.snapshot()
        memory.read(some_text(20, 1), "b")
        memory.backend.saving.reap(wait=True)
        disk.go_on.clear()
        memory.read(some_text(150, 2, ["known1", "zebra"]), "zoo")
        assert memory.backend.saving.busy
        threading.Timer(0.2, disk.go_on.set).start()
        memory.forget(document="zoo")
        for path in (tmp_path / "m").rglob("*"):
            if path.is_file() and not path.name.startswith("journal"):
                assert b"zebra" not in path.read_bytes(), path
        memory.compact()
        assert delta_paths(tmp_path / "m", 1) == []
        memory.read(some_text(50, 3), "c")
        known = state_of(memory)
        crash(memory)
    assert_little_is_read_again(tmp_path / "m", known)


@pytest.mark.parametrize("kind", ["open", "write", "sync", "replace"])
def test_a_disk_that_fails_beside_the_reading_is_said_and_costs_nothing(
    tmp_path: Path, kind: str
) -> None:
    with opened(tmp_path / "count", config=CODED, disk=(count := FailingDisk())) as memory:
        for seed in range(4):
            memory.read(some_text(40, seed), "a")
        expected = state_of(memory)
    random = np.random.default_rng(0)
    for at in random.choice(count.counts[kind], min(count.counts[kind], 6), replace=False):
        folder = tmp_path / f"m{at}"
        disk = FailingDisk(kind, int(at), errno.ENOSPC)
        # If it was the journal that failed, the writer is told; the rest is for the events.
        with suppress(StoreError), opened(folder, config=CODED, disk=disk) as memory:
            for seed in range(4):
                memory.read(some_text(40, seed), "a")
            assert all("could not be written" in event for event in memory.events)
            assert state_of(memory) == expected
        with opened(folder, config=CODED) as memory:
            assert memory.check(deep=True) == []


@pytest.mark.parametrize("kind", ["open", "write", "sync", "replace"])
def test_compacting_that_fails_anywhere_leaves_a_memory_that_goes_on(
    tmp_path: Path, kind: str
) -> None:
    before: list[int] = []

    def use(memory: Memory) -> None:
        memory.read(some_text(20), "a")
        memory.forget(document="a")
        before.append(count.counts[kind])
        memory.read(some_text(20, 1), "b")
        with suppress(StoreError):
            memory.compact()
        with suppress(StoreError):
            memory.read(some_text(20, 2), "c")

    with opened(tmp_path / "count", disk=(count := FailingDisk())) as memory:
        use(memory)
    # What fails in reading and forgetting alone is in test_faults.py.
    for at in range(before[0], count.counts[kind]):
        with (
            suppress(StoreError),
            opened(tmp_path / f"m{at}", disk=FailingDisk(kind, at, errno.EIO)) as memory,
        ):
            use(memory)
        with opened(tmp_path / f"m{at}") as memory:
            assert memory.check(deep=True) == [], (kind, at)
            # A delta that tells what its checkpoint has already would be passed over, and said.
            assert not any("there already" in event for event in memory.events), (kind, at)


def test_a_step_too_long_for_a_record_is_a_snapshot_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONGEST", 1500)
    with opened(tmp_path / "m") as memory:
        memory.read(some_text(60), "a")
        assert [step for path in delta_paths(tmp_path / "m", 1) for step in read_deltas(path)] == []
        assert memory.events
        assert all("can be read back" in event for event in memory.events)
        known = state_of(memory)
        crash(memory)
    with opened(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert memory.backend.saving.since < STEP + BLOCK
        assert memory.check(deep=True) == []
