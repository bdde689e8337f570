"""The last read or forget is taken back, exactly and durably; until the memory is compacted."""

from pathlib import Path

import pytest

import unbounded
from tests.memory.texts import CONFIG, open_toy, some_text, state_of, store_of, toy_model
from unbounded.errors import StoreError
from unbounded.memory import Memory
from unbounded.store.backup import backup


def what_it_is(memory: Memory) -> object:
    """What a memory knows, and what it says was read."""
    return state_of(memory), memory.documents(), memory.backend.files()


def test_undo_brings_back_what_was_forgotten_and_takes_back_what_was_read(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        one = what_it_is(memory)
        memory.read("known1 zebra\n" * 9, "b")
        two = what_it_is(memory)
        assert memory.forget("a") > 0
        verb, words = memory.undo()
        assert (verb, words > 0) == ("forget", True)
        assert what_it_is(memory) == two
        assert memory.undo() == ("read", -27)
        assert what_it_is(memory) == one
        assert memory.check(deep=True) == []
    with open_toy(tmp_path / "m") as memory:
        assert what_it_is(memory) == one
        memory.undo()
        assert len(memory) == 0
        with pytest.raises(StoreError, match="nothing can be taken back"):
            memory.undo()
        memory.read("known2", "c")
        memory.compact()
        with pytest.raises(StoreError, match="since it was made or compacted"):
            memory.undo()


def test_what_was_read_together_is_taken_back_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"known1 {name}\n")
    memory = unbounded.open(model=toy_model(), config=CONFIG)
    memory.read_files(tmp_path)
    before = what_it_is(memory)
    (tmp_path / "a.txt").write_text("known2\n")
    (tmp_path / "c.txt").write_text("known3\n")
    memory.read_files(tmp_path)
    memory.read_files(tmp_path)
    assert memory.undo() == ("read", -1)
    assert what_it_is(memory) == before
    found = memory.read_files(tmp_path)
    assert (len(found.new), len(found.replaced), len(found.unchanged)) == (1, 1, 1)


def test_readers_follow_an_undo_and_backups_too(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory, open_toy(tmp_path / "m", mode="read") as reader:
        memory.read("known1 zebra\n" * 50, "a")
        memory.read("known2 okapi\n" * 50, "b")
        assert reader.refresh() == 300
        backup(tmp_path / "m", tmp_path / "copy")
        memory.undo()
        assert reader.refresh() is None
        assert len(reader) == 150
        memory.read("known3 gnu\n" * 90, "c")
        assert reader.refresh() in (270, None)
        assert state_of(reader) == state_of(memory)
        backup(tmp_path / "m", tmp_path / "copy")
        with open_toy(tmp_path / "copy", mode="read") as copy:
            assert [one.name for one in copy.documents()] == ["a", "c"]
        assert store_of(memory).verbs[-1][1] == "read"
