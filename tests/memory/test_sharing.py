"""One writer, many readers, also in other processes; readers see a past that fits together."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Torture
from tests.memory.failing import FailingDisk, WatchedDisk
from tests.memory.texts import open_toy, some_text, state_of
from unbounded.errors import StoreError
from unbounded.memory import Memory

ROOT = Path(__file__).parents[2]

READER = """
import sys
from pathlib import Path
from tests.memory.texts import open_toy, store_of
with open_toy(Path(sys.argv[1]), mode="read") as memory:
    print("open", flush=True)
    seen = []
    while True:
        assert memory.check(deep=True) == []
        entries = len(memory)
        if entries not in seen:
            seen.append(entries)
        text = [word for words in store_of(memory).replay() for word in words]
        assert len(text) == entries
        if "stop" in text:
            break
        memory.refresh()
    assert len(seen) > 1, seen
    print("done", flush=True)
"""

WRITER = """
import sys
from pathlib import Path
from tests.memory.texts import open_toy, store_of
try:
    open_toy(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""


def child(code: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_second_writer_is_refused_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1", "a")
        before = {path: path.read_bytes() for path in (tmp_path / "m").iterdir() if path.is_file()}
        for _ in range(2):
            with pytest.raises(StoreError, match=rf"process {os.getpid()}.*open it for reading"):
                open_toy(tmp_path / "m")
        said, _ = child(WRITER, tmp_path / "m").communicate()
        assert said.startswith("StoreError")
        assert f"written by process {os.getpid()}" in said
        assert {path: path.read_bytes() for path in before} == before
        memory.read("known2", "a")
    open_toy(tmp_path / "m").close()


def test_a_reader_in_another_process_always_sees_a_past_that_fits_together(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(5), "a")
        reader = child(READER, tmp_path / "m")
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        for seed in range(12):
            memory.read(some_text(5, seed), f"doc{seed}")
            if seed % 3 == 0:
                memory.backend.snapshot()
            if seed % 4 == 3:
                memory.forget(document=f"doc{seed - 1}")
            if seed % 6 == 5:
                memory.compact()
        memory.read("stop", "last")
        said, _ = reader.communicate(timeout=100)
        assert (said, reader.returncode) == ("done\n", 0)


def test_a_reader_follows_what_was_read_forgotten_and_compacted(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(5), "a")
        with open_toy(tmp_path / "m", mode="read") as reader:
            assert state_of(reader) == state_of(memory)
            assert reader.refresh() == 0
            heard = memory.read(some_text(5, 1), "b")
            assert state_of(reader) != state_of(memory)
            assert reader.refresh() == len(heard.words)
            assert state_of(reader) == state_of(memory)
            memory.forget(document="a")
            assert reader.refresh() is None
            assert state_of(reader) == state_of(memory)
            memory.compact()
            memory.read(some_text(2, 2), "c")
            assert reader.refresh() is None
            assert state_of(reader) == state_of(memory)
            assert {p.document for p in reader.predict("known1").sources} <= {"b", "c"}


def test_who_reads_or_views_is_answered_as_before_while_the_writer_forgets_and_compacts(
    tmp_path: Path,
) -> None:
    def answers(memory: Memory) -> list[object]:
        given = {"bytes", "bytes_by_part", "snapshots"}
        return [
            {key: value for key, value in memory.stats().items() if key not in given},
            memory.documents(),
            memory.check(),
            memory.check(deep=True),
            memory.predict("known1"),
            memory.score("known1 new1").nats.tolist(),
            memory.complete("known1", 3),
            memory.export(tmp_path / "rows.csv"),
        ]

    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(5), "a")
        memory.backend.snapshot()
        memory.read(some_text(5, 1), "b")
        with open_toy(tmp_path / "m", mode="read") as reader, memory.view() as view:
            before = answers(reader), answers(view)
            memory.forget(document="a")
            assert (answers(reader), answers(view)) == before
            memory.compact()
            assert (answers(reader), answers(view)) == before


def test_a_reader_may_not_write(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2", "a")
    before = sorted((p, p.stat().st_mtime_ns) for p in (tmp_path / "m").rglob("*"))
    with open_toy(tmp_path / "m", mode="read") as reader:
        for write in (
            lambda: reader.read("known1"),
            lambda: reader.forget(last=1),
            reader.compact,
            reader.backend.snapshot,
        ):
            with pytest.raises(StoreError, match="opened for reading"):
                write()
        reader.predict()
        reader.score("known1 new1")
    assert sorted((p, p.stat().st_mtime_ns) for p in (tmp_path / "m").rglob("*")) == before
    with pytest.raises(StoreError, match="was closed"):
        reader.predict()


def test_a_reader_that_looked_before_a_block_was_taken_back_does_not_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_toy(tmp_path / "m")
    memory.read("known1 known2", "a")
    with open_toy(tmp_path / "m", mode="read") as reader:

        def fail(words: object) -> None:
            assert reader.refresh() == 3
            raise KeyboardInterrupt

        monkeypatch.setattr(memory.backend.learned, "read", fail)
        with pytest.raises(KeyboardInterrupt):
            memory.read("known3 phantom", "b")
        # As long as what was taken back, so that nothing shows by length.
        memory.read("known4 another", "c")
        assert reader.refresh() is None
        assert "phantom" not in reader.online.vocabulary
        assert state_of(reader) == state_of(memory)
    memory.close()


def live(memory: Memory) -> None:
    memory.read(some_text(3, 1), "b")
    memory.backend.snapshot()
    memory.forget(document="b")
    memory.read(some_text(3, 2), "c")
    memory.compact()
    memory.read(some_text(3, 3), "d")


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["open", "write", "sync", "replace"])
def test_a_reader_that_looks_at_every_failure_of_the_writer_ends_where_the_writer_does(
    tmp_path: Path, kind: str, torture: Torture
) -> None:
    with open_toy(tmp_path / "count", disk=(disk := FailingDisk())) as memory:
        memory.read("known1", "a")
        live(memory)
    points = torture.random.permutation(disk.counts[kind])[: torture.cases(3, 20)].tolist()
    looks = 0
    for at in points:
        folder = tmp_path / f"m{at}"
        with open_toy(folder, disk=FailingDisk()) as memory:
            memory.read("known1", "a")
        with open_toy(folder, mode="read", disk=FailingDisk()) as reader:

            def look(reader: Memory = reader) -> None:
                reader.refresh()

            failing = WatchedDisk(FailingDisk(kind, at, errno.EIO), look)
            with suppress(StoreError), open_toy(folder, disk=failing) as memory:
                live(memory)
            with open_toy(folder, disk=FailingDisk()) as memory:
                memory.read("known2", "e")
                reader.refresh()
                assert state_of(reader) == state_of(memory), (kind, at)
            looks += failing.calls
    torture.tell(f"reader looks while {kind} fails", "folder", looks)


def test_a_writer_whose_lock_was_removed_stays_the_only_one(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1", "a")
        (tmp_path / "m" / "lock").unlink()
        with pytest.raises(StoreError, match="whose file 'lock' was removed"):
            open_toy(tmp_path / "m")
        memory.read("known2", "b")
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert memory.events == []
