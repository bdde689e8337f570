"""What is no memory, no text or no name is refused in one line, and nothing changes."""

import errno
import json
from pathlib import Path

import pytest

import unbounded
from tests.memory.failing import FailingDisk
from tests.memory.texts import CONFIG, open_toy, state_of, store_of, toy_model
from unbounded.errors import SettingError, StoreError
from unbounded.presets import MemoryConfig
from unbounded.store.disk import sealed, unsealed
from unbounded.store.layout import FORMAT, read_about


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_foreign_folder_is_left_alone(tmp_path: Path, mode: str) -> None:
    (tmp_path / "letters.txt").write_text("dear all")
    with pytest.raises(StoreError, match=r"not a memory \(it has letters.txt and no format.json\)"):
        open_toy(tmp_path, mode=mode)
    with pytest.raises(StoreError, match="is a file"):
        open_toy(tmp_path / "letters.txt", mode=mode)
    assert listing(tmp_path) == {str(tmp_path / "letters.txt"): b"dear all"}


def test_what_a_crash_left_of_making_a_memory_is_made_again(tmp_path: Path) -> None:
    open_toy(tmp_path / "m").close()
    (tmp_path / "m" / "format.json").rename(tmp_path / "m" / "format.json.aside")
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1", "a")
    assert not (tmp_path / "m" / "format.json.aside").exists()


def test_a_newer_format_and_another_kind_are_refused(tmp_path: Path) -> None:
    open_toy(tmp_path / "m").close()
    path = tmp_path / "m" / "format.json"
    about = unsealed(path.read_bytes())
    path.write_bytes(sealed({**about, "format": 99}))
    with pytest.raises(StoreError, match="format 99; this version reads up to 2: upgrade"):
        open_toy(tmp_path / "m")
    path.write_bytes(sealed({**about, "kind": "recipes"}))
    with pytest.raises(StoreError, match="'recipes', not of a memory"):
        open_toy(tmp_path / "m")
    path.write_text(json.dumps([1]))
    with pytest.raises(StoreError, match="damaged"):
        open_toy(tmp_path / "m")


def test_upgrades_are_numbered_and_come_one_after_another(tmp_path: Path) -> None:
    open_toy(tmp_path / "m").close()
    upgrades = {
        FORMAT: lambda value: {**value, "one": True},
        FORMAT + 1: lambda value: {**value, "two": value["one"]},
    }
    about = read_about(tmp_path / "m", upgrades)
    assert (about["format"], about["one"], about["two"]) == (FORMAT + 2, True, True)


def test_another_models_memory_is_refused(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1", "a")
    before = listing(tmp_path)
    with pytest.raises(StoreError, match="belongs to another model"):
        open_toy(tmp_path / "m", toy_model(seed=1))
    with pytest.raises(StoreError, match="give the model"):
        unbounded.open(tmp_path / "m")
    with pytest.raises(SettingError, match="its settings stay"):
        open_toy(tmp_path / "m", config=MemoryConfig(index="flat", k=9, window=16))
    assert listing(tmp_path) == before
    unbounded.open(tmp_path / "m", toy_model()).close()


def test_a_memory_that_is_not_there_needs_a_writer(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="read a text into it first"):
        open_toy(tmp_path / "m", mode="read")
    with pytest.raises(SettingError, match="use write or read"):
        open_toy(tmp_path / "m", mode="append")
    assert not (tmp_path / "m").exists()


def test_a_read_only_disk_can_be_read_and_not_written(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2", "a")
        known = state_of(memory)
    before = listing(tmp_path)
    disk = FailingDisk("open", 0, errno.EROFS, lasting=1_000_000)
    with pytest.raises(StoreError, match=r"Read-only file system\).*open it for reading"):
        open_toy(tmp_path / "m", disk=disk)
    with open_toy(tmp_path / "m", mode="read", disk=disk) as memory:
        assert state_of(memory) == known
    with pytest.raises(StoreError, match="Read-only file system"):
        open_toy(tmp_path / "new", disk=disk)
    assert listing(tmp_path / "m") == {k: v for k, v in before.items() if "/m/" in k}


def test_a_lost_journal_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1", "a")
        store_of(memory).path.unlink()
    with pytest.raises(StoreError, match="has lost its journal"):
        open_toy(tmp_path / "m")


def test_a_name_is_a_label_whatever_it_looks_like(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "a\nb", "broken \udcff name", "", "ü", "x" * 5_000]
    with open_toy(tmp_path / "m") as memory:
        for name in names:
            memory.read("known1", name)
        memory.read("half \ud800 a letter", "ü")
    with open_toy(tmp_path / "m") as memory:
        found = [document.name for document in store_of(memory).catalog.documents]
        assert found == [name.replace("\udcff", "?") for name in names]
        assert memory.check(deep=True) == []
        assert memory.forget(document="../../etc/passwd") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]
    assert CONFIG.k == 8
