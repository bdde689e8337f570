"""One writer, many readers, also in other processes; readers see a past that fits together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.keep.texts import open_toy, some_text, state_of
from unbounded.errors import StoreError

ROOT = Path(__file__).parents[2]

READER = """
import sys
from pathlib import Path
from tests.keep.texts import open_toy
with open_toy(Path(sys.argv[1]), mode="read") as memory:
    print("open", flush=True)
    seen = []
    while True:
        assert memory.check(deep=True) == []
        entries = len(memory)
        if entries not in seen:
            seen.append(entries)
        text = [word for words in memory.store.replay() for word in words]
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
from tests.keep.texts import open_toy
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
                memory.snapshot()
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


def test_a_reader_may_not_write(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2", "a")
    before = sorted((p, p.stat().st_mtime_ns) for p in (tmp_path / "m").rglob("*"))
    with open_toy(tmp_path / "m", mode="read") as reader:
        for write in (
            lambda: reader.read("known1"),
            lambda: reader.forget(last=1),
            reader.compact,
            reader.snapshot,
        ):
            with pytest.raises(StoreError, match="opened for reading"):
                write()
        reader.predict()
        reader.score("known1 new1")
    assert sorted((p, p.stat().st_mtime_ns) for p in (tmp_path / "m").rglob("*")) == before
    with pytest.raises(StoreError, match="was closed"):
        reader.predict()
