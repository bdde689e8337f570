"""Disks that fail: nothing that was acknowledged is lost, nothing forgotten comes back."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Torture
from tests.memory.failing import FailingDisk
from tests.memory.texts import open_toy, some_text, state_of, store_of
from unbounded.corpus import lines_of
from unbounded.errors import StoreError
from unbounded.memory import Memory, checkpointing, local

TEXTS = {name: some_text(4, seed) for seed, name in enumerate(("a", "b", "c", "d"))}


def live(folder: Path, disk: FailingDisk, done: list[str]) -> None:
    """Some of everything; `done` says what was acknowledged."""
    with open_toy(folder, disk=disk) as memory:
        for name in ("a", "b"):
            memory.read(TEXTS[name], name)
            done.append(name)
        memory.backend.snapshot()
        memory.read(TEXTS["c"], "c")
        done.append("c")
        memory.forget(document="b")
        done.append("-b")
        memory.compact()
        memory.read(TEXTS["d"], "d")
        done.append("d")


def documents(memory: Memory) -> set[str]:
    return {document.name for document in memory.documents()}


def allowed(done: list[str]) -> list[set[str]]:
    """Which documents may be there: what was acknowledged, perhaps with one step more."""
    steps = ["a", "b", "c", "-b", "d"]
    found = []
    for count in (len(done), min(len(done) + 1, len(steps))):
        there = {step for step in steps[:count] if step[0] != "-"}
        found.append(there - {step[1:] for step in steps[:count]})
    return found


def calls(kind: str, folder: Path) -> int:
    disk = FailingDisk()
    live(folder, disk, [])
    return disk.counts[kind]


@pytest.mark.torture
@pytest.mark.parametrize(
    ("kind", "lasting"),
    [("open", 1), ("write", 1), ("write", 1_000_000), ("sync", 1), ("replace", 1)],
)
def test_whatever_call_fails_nothing_acknowledged_is_lost(
    tmp_path: Path, kind: str, lasting: int, torture: Torture
) -> None:
    total = calls(kind, tmp_path / "count")
    assert total > 5
    code = errno.ENOSPC if kind == "write" else errno.EIO
    points = torture.random.permutation(total)[: torture.cases(6, total)].tolist()
    for at in points:
        folder, done = tmp_path / f"m{at}", list[str]()
        said = ""
        try:
            live(folder, FailingDisk(kind, at, code, lasting=lasting), done)
        except StoreError as error:
            said = str(error)
        assert "\n" not in said
        assert not said or str(folder) in said
        with open_toy(folder) as memory:
            assert documents(memory) in allowed(done), (at, done)
            assert memory.check(deep=True) == []
            memory.read("known1", "later")
    often = "once" if lasting == 1 else "from there on"
    torture.tell(f"{kind} fails ({os.strerror(code)}), {often}", "folder", len(points))


def test_a_full_disk_stops_a_read_and_room_lets_it_go_on(tmp_path: Path) -> None:
    disk = FailingDisk("write", 8, errno.ENOSPC)
    with open_toy(tmp_path / "m", disk=disk) as memory:
        memory.read(TEXTS["a"], "a")
        known, end = state_of(memory), store_of(memory).journal.end
        disk.counts["write"] = 8
        with pytest.raises(StoreError, match=r"No space left on device.*make room"):
            memory.read(TEXTS["b"], "b")
        assert (state_of(memory), store_of(memory).journal.end) == (known, end)
        assert store_of(memory).path.stat().st_size == end
        memory.read(TEXTS["b"], "b")
    with open_toy(tmp_path / "m") as memory, open_toy(tmp_path / "n") as other:
        for name in ("a", "b"):
            other.read(TEXTS[name], name)
        assert state_of(memory) == state_of(other)


def test_of_a_text_that_could_not_be_read_to_its_end_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK", 16)
    monkeypatch.setattr(local, "SYNCED", 32)
    monkeypatch.setattr(checkpointing, "DELTA_WORDS", 50)
    text = some_text(40, 3)
    with open_toy(tmp_path / "straight", disk=(count := FailingDisk())) as straight:
        straight.read(TEXTS["a"], "a")
        straight.read(text, "long")
        expected = state_of(straight)
    for at in range(30, count.counts["write"], 7):
        disk = FailingDisk("write", at, errno.ENOSPC)
        with open_toy(tmp_path / f"m{at}", disk=disk) as memory:
            memory.read(TEXTS["a"], "a")
            known, end = state_of(memory), store_of(memory).journal.end
            with suppress(StoreError):
                memory.read(text, "long")
                # It was only something set aside that failed.
                continue
            assert (state_of(memory), store_of(memory).journal.end) == (known, end)
            # There is room again.
            memory.read(text, "long")
            assert state_of(memory) == expected
        with open_toy(tmp_path / f"m{at}") as memory:
            assert state_of(memory) == expected
            assert memory.check(deep=True) == []


def test_of_lines_that_could_not_be_read_to_their_end_it_is_said_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK", 16)
    disk = FailingDisk("write", 12, errno.ENOSPC)
    with open_toy(tmp_path / "m", disk=disk) as memory:
        with pytest.raises(StoreError, match="No space left"):
            list(memory.follow(lines_of(some_text(40), "long", 1)))
        last = store_of(memory).catalog.where(np.array([store_of(memory).catalog.positions - 1]))[0]
        assert memory.events[-1] == (
            f"{len(memory):,} words were read before it failed and are kept, up to line "
            f"{last.line} of 'long'"
        )
        assert memory.check(deep=True) == []


def test_after_a_sync_that_failed_nothing_more_is_promised(tmp_path: Path) -> None:
    disk = FailingDisk("sync", 10_000)
    memory = open_toy(tmp_path / "m", disk=disk)
    memory.read(TEXTS["a"], "a")
    disk.counts["sync"] = 10_000
    with pytest.raises(StoreError, match="could not be synced"):
        memory.read(TEXTS["b"], "b")
    with pytest.raises(StoreError, match="open it again"):
        memory.read(TEXTS["c"], "c")
    store_of(memory).close()
    with open_toy(tmp_path / "m") as memory:
        assert documents(memory) in ({"a"}, {"a", "b"})
        assert memory.check(deep=True) == []


def test_a_disk_that_writes_seven_bytes_at_a_time_is_slow_and_nothing_else(tmp_path: Path) -> None:
    live(tmp_path / "slow", FailingDisk(most=7), [])
    live(tmp_path / "fast", FailingDisk(), [])
    with open_toy(tmp_path / "slow") as slow, open_toy(tmp_path / "fast") as fast:
        assert state_of(slow) == state_of(fast)
        assert slow.check(deep=True) == []


def test_a_snapshot_that_could_not_be_written_is_said_and_costs_nothing(tmp_path: Path) -> None:
    disk = FailingDisk("replace", 10_000)
    with open_toy(tmp_path / "m", disk=disk) as memory:
        memory.read(TEXTS["a"], "a")
        disk.counts["replace"] = 10_000
        memory.backend.snapshot()
        assert ["could not be written" in event for event in memory.events] == [True]
        assert memory.check() == []
        memory.read(TEXTS["b"], "b")
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
