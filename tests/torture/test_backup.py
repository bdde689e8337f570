"""Backed up while it is written, and killed in the middle: a backup is the memory at a moment."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Torture
from tests.memory import texts
from tests.memory.failing import FailingDisk, Killed, WatchedDisk
from tests.memory.texts import open_toy, some_text, store_of
from tests.torture.places import fresh
from unbounded.corpus import lines_of
from unbounded.errors import StoreError
from unbounded.memory import Memory, local
from unbounded.store import Store
from unbounded.store.backup import backup, restore
from unbounded.store.layout import snapshot_paths

ROOT = Path(__file__).parents[2]


def text_of(store: Store) -> list[str]:
    return [word for words in store.replay() for word in words]


class Writer:
    """Writes a little each time it is looked at, and remembers what it had acknowledged."""

    def __init__(self, folder: Path, torture: Torture) -> None:
        self.memory: Memory = open_toy(folder, disk=FailingDisk())
        self.random, self.turn = torture.random, 0
        self.past: list[list[str]] = []
        for _ in range(3):
            self.write("read")
        self.memory.backend.snapshot()

    def look(self) -> None:
        if self.random.random() < 0.3:
            self.write(str(self.random.choice(["read", "read", "read", "forget", "compact"])))

    def write(self, what: str) -> None:
        self.turn += 1
        if what == "read":
            self.memory.read(some_text(4, self.turn), f"d{self.turn}")
        elif what == "forget":
            names = [one.name for one in self.memory.documents()]
            self.memory.forget(document=str(self.random.choice(names)))
        else:
            self.memory.compact()
        self.past.append(text_of(store_of(self.memory)))
        if not self.past[-1]:
            self.write("read")


def is_a_moment_of(folder: Path, writer: Writer, since: int, *, died: bool = False) -> None:
    """The backup opens, is whole, and is what the writer had at some time since then.

    Of one that died, it is said what was torn: the journal's end, or the mark beside it.
    """
    with open_toy(folder, disk=FailingDisk()) as copy:
        torn = [e for e in copy.events if "torn end" in e or "acknowledged is damaged" in e]
        assert copy.events == (torn if died else [])
        assert copy.check(deep=True) == []
        assert text_of(store_of(copy)) in writer.past[since:]
        copy.read("known1", "goes on")


@pytest.mark.torture
def test_a_backup_under_write_is_the_memory_at_a_moment(tmp_path: Path, torture: Torture) -> None:
    writer = Writer(tmp_path / "m", torture)
    rounds = torture.cases(3, 12)
    for number in range(rounds):
        since = len(writer.past) - 1
        made = backup(tmp_path / "m", tmp_path / "b", disk=WatchedDisk(FailingDisk(), writer.look))
        assert made.words >= len(writer.past[since]) or len(writer.past) > since + 1
        is_a_moment_of(fresh(tmp_path / "b", tmp_path / "copy"), writer, since)
        if number % 2:
            restore(tmp_path / "b", tmp_path / f"again{number}", disk=FailingDisk())
            is_a_moment_of(tmp_path / f"again{number}", writer, since)
    writer.memory.close()
    torture.tell("backup under write", "folder", rounds)


@pytest.mark.torture
def test_a_backup_that_dies_anywhere_is_gone_on_with(tmp_path: Path, torture: Torture) -> None:
    writer = Writer(tmp_path / "m", torture)
    deaths = 0
    for dies_at in range(0, torture.cases(32, 60), torture.cases(8, 2)):
        disk = WatchedDisk(FailingDisk(), writer.look, dies_at)
        with suppress(Killed):
            backup(tmp_path / "m", tmp_path / "b", disk=disk)
        deaths += disk.calls > dies_at
        if (tmp_path / "b" / "format.json").exists():
            # Whatever it was in the middle of, the last one that was finished is there.
            is_a_moment_of(fresh(tmp_path / "b", tmp_path / "copy"), writer, 0, died=True)
        if dies_at % 3 == 0:
            since = len(writer.past) - 1
            backup(tmp_path / "m", tmp_path / "b", disk=FailingDisk())
            is_a_moment_of(fresh(tmp_path / "b", tmp_path / "copy"), writer, since)
    writer.memory.close()
    torture.tell("backup stopped at a call to the disk", "folder", deaths)


CHILD = """
import sys
from unbounded.store.backup import backup
print("ready", flush=True)
while True:
    backup(sys.argv[1], sys.argv[2])
"""


@pytest.mark.torture
def test_a_backup_that_is_killed_is_gone_on_with(tmp_path: Path, torture: Torture) -> None:
    writer = Writer(tmp_path / "m", torture)
    kills = torture.cases(1, 12)
    for _ in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "m"), str(tmp_path / "b")],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        until = time.monotonic() + float(torture.random.uniform(0, 0.4))
        while time.monotonic() < until:
            writer.write("read")
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        since = len(writer.past) - 1
        backup(tmp_path / "m", tmp_path / "b")
        is_a_moment_of(fresh(tmp_path / "b", tmp_path / "copy"), writer, since)
    writer.memory.close()
    torture.tell("backup killed", "folder", kills)


def test_the_next_backup_brings_only_what_has_come(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(60), "a")
        memory.backend.snapshot()
        first = backup(tmp_path / "m", tmp_path / "b")
        memory.read(some_text(2, 1), "b")
        second = backup(tmp_path / "m", tmp_path / "b")
        assert second.words == len(memory)
        assert 0 < second.copied < first.copied / 10
        assert backup(tmp_path / "m", tmp_path / "b").copied == 0
        known = texts.state_of(memory)
    assert restore(tmp_path / "b", tmp_path / "again").words == second.words
    # The state has come along: little is read again.
    assert len(snapshot_paths(tmp_path / "again", 1)) == 1
    with open_toy(tmp_path / "again") as memory:
        assert memory.backend.saving.since < 30
        assert texts.state_of(memory) == known


def test_what_was_not_acknowledged_is_in_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK", 8)
    with open_toy(tmp_path / "m") as memory:
        known = len(memory.read("known1 known2", "a").words)
        stream = memory.follow(lines_of(some_text(9), "b", 1))
        next(stream)
        assert len(memory) > known
        assert backup(tmp_path / "m", tmp_path / "b").words == known
        assert len(list(stream)) > 1
        assert backup(tmp_path / "m", tmp_path / "b").words == len(memory)


def test_a_backup_is_never_written_over_something_else(tmp_path: Path) -> None:
    for name in ("m", "other"):
        with open_toy(tmp_path / name) as memory:
            memory.read(some_text(5), "a")
    backup(tmp_path / "m", tmp_path / "b")
    with pytest.raises(StoreError, match="is of another memory than"):
        backup(tmp_path / "other", tmp_path / "b")
    with pytest.raises(StoreError, match="is a memory already"):
        restore(tmp_path / "b", tmp_path / "m")
    with open_toy(tmp_path / "b") as copy:
        copy.read("known1", "its own way")
    with pytest.raises(StoreError, match="went on otherwise"):
        backup(tmp_path / "m", tmp_path / "b")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("dear all")
    with pytest.raises(StoreError, match=r"it has dear\.txt"):
        backup(tmp_path / "m", tmp_path / "letters")
    with pytest.raises(StoreError, match="is not a memory"):
        backup(tmp_path / "nothing", tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_damaged_memory_is_not_backed_up_and_a_damaged_backup_not_restored(
    tmp_path: Path,
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        memory.backend.snapshot()
    backup(tmp_path / "m", tmp_path / "b")
    for path in (*tmp_path.glob("b/journal*"), *tmp_path.glob("b/*/arrays.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-70] + bytes([whole[-70] ^ 1]) + whole[-69:])
        with pytest.raises(StoreError):
            restore(tmp_path / "b", tmp_path / f"from-{path.name}")
        assert (
            not (tmp_path / f"from-{path.name}" / "format.json").exists() or path.suffix == ".npy"
        )
        path.write_bytes(whole)
    restore(tmp_path / "b", tmp_path / "again")
