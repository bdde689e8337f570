"""What goes wrong with shards is said in one line, and nothing is lost."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unbounded
from tests.memory.failing import FailingDisk
from tests.memory.texts import open_toy, some_text, state_of, toy_model
from unbounded.cluster import Here
from unbounded.errors import EngineError, SettingError, StoreError, UnboundedError
from unbounded.memory import Memory, checkpointing, opening
from unbounded.memory.opening import move_memory
from unbounded.store.backup import backup, restore
from unbounded.store.disk import sealed, unsealed

ENGINE = "here://local?shards=2"


def opened(folder: Path, engine: str = ENGINE, **more: Any) -> Memory:
    return open_toy(folder, engine=engine, **more)


def shards_of(memory: Memory) -> Here:
    shards = memory.backend.shards
    assert isinstance(shards, Here)
    return shards


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory on two shards that has read something, and has a checkpoint."""
    with opened(tmp_path / "m") as memory:
        memory.read(some_text(120), "a")
    return tmp_path / "m"


def what(folder: Path) -> tuple[int, dict[str, bytes], list[str]]:
    with opened(folder) as memory:
        assert memory.check(deep=True) == []
        return len(memory), state_of(memory), list(memory.events)


def change(path: Path, **named: object) -> None:
    path.write_bytes(sealed({**unsealed(path.read_bytes()), **named}))


@pytest.mark.parametrize(
    "changed", [{"format": 99}, {"model": "another"}, {"memory": "another"}, {"shards": 7}]
)
def test_a_shard_of_something_else_is_refused_in_one_line(
    folder: Path, changed: dict[str, object]
) -> None:
    change(folder / "shards" / "0001" / "shard.json", **changed)
    (name,) = changed
    with pytest.raises(EngineError, match=f"is a shard of another {name} .*remove that folder"):
        opened(folder)
    # What it says to do does it.
    shutil.rmtree(folder / "shards" / "0001")
    with opened(folder) as memory:
        assert len(memory) > 700


@pytest.mark.parametrize("lost", ["a shard", "all", "a state"])
def test_what_a_shard_has_lost_is_read_again_from_the_journal(folder: Path, lost: str) -> None:
    entries, state, events = what(folder)
    assert events == []
    if lost == "a state":
        for path in (folder / "shards" / "0000").glob("*-*"):
            shutil.rmtree(path)
    else:
        shutil.rmtree(folder / "shards" / ("0000" if lost == "a shard" else ""))
    found = what(folder)
    assert found[:2] == (entries, state)
    (said,) = found[2]
    assert "is lost or damaged" in said
    assert said.endswith("what it held is read again from the journal")
    assert what(folder) == (entries, state, [])


def test_a_state_that_is_damaged_is_found_by_check_and_read_again(folder: Path) -> None:
    before = what(folder)
    with opened(folder) as memory:
        memory.compact()
    (state,) = (folder / "shards" / "0001").glob("*-*")
    path = state / "arrays.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    with opened(folder) as memory:
        path.write_bytes(data)
        (finding,) = memory.check()
        assert "is lost or damaged" in finding.what
        assert finding.advice.startswith("open the memory again")
    assert what(folder)[:2] == before[:2]


def test_a_full_disk_of_a_shard_costs_a_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointing, "DELTA_WORDS", 200)
    with opened(tmp_path / "m") as memory:
        for shard in shards_of(memory).shards[1:]:
            shard._disk = FailingDisk("write", 0, errno.ENOSPC, lasting=10**6)
        memory.read(some_text(120), "a")
        expected = state_of_learned(memory)
        assert any("could not be written (No space left" in event for event in memory.events)
    with opened(tmp_path / "m") as memory:
        assert len(memory) > 700
        assert state_of_learned(memory) == expected
        assert memory.check(deep=True) == []


def state_of_learned(memory: Memory) -> list[bytes]:
    """What was learned beside the index, which may have nowhere to be saved."""
    experts = {n: e for n, e in memory.online.experts.items() if n != "unbounded"}
    states = [state for expert in experts.values() for state in expert.state().values()]
    return [state.tobytes() for state in states]


def test_a_shard_that_ends_while_it_is_read_or_asked_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    texts = [some_text(30, seed) for seed in range(4)]
    with open_toy(tmp_path / "straight") as straight:
        expected = [straight.read(text, "a").prob.tolist() for text in texts]
        asked = straight.score(texts[0]).prob.tolist()
    with opened(tmp_path / "m") as memory:
        for number, text in enumerate(texts):
            for shard in shards_of(memory).shards[: 1 + number % 2]:
                shard._held.clear()
            assert memory.read(text, "a").prob.tolist() == pytest.approx(expected[number])
        shards_of(memory).shards[1]._held.clear()
        assert memory.score(texts[0]).prob.tolist() == pytest.approx(asked)
        assert memory.check(deep=True) == []


def test_one_that_lost_its_states_too_says_to_open_it_again(folder: Path) -> None:
    with opened(folder) as memory:
        entries = len(memory)
        shards_of(memory).shards[0]._held.clear()
        shutil.rmtree(folder / "shards" / "0000")
        with pytest.raises(EngineError, match="open the memory again: it is read again"):
            memory.score("known1 known2")
    with opened(folder) as memory:
        assert len(memory) == entries


def test_a_backup_needs_no_shards_and_is_restored_with_them(folder: Path, tmp_path: Path) -> None:
    asked = "known1 new2 known3"
    with opened(folder) as memory:
        entries, expected = len(memory), memory.score(asked).prob.tolist()
        # While it is open, and while shards are lost.
        shutil.rmtree(folder / "shards" / "0001")
        assert backup(folder, tmp_path / "copy").words == entries
        memory.read(some_text(20, 7), "later")
        later = len(memory)
    assert not (tmp_path / "copy" / "shards").exists()
    restore(tmp_path / "copy", tmp_path / "again")
    for each in ("again", "copy"):
        with opened(tmp_path / each) as memory:
            assert len(memory) == entries
            assert memory.score(asked).prob.tolist() == pytest.approx(expected)
            assert memory.check(deep=True) == []
    # The next one brings what has come since, onto what was opened meanwhile too.
    assert backup(folder, tmp_path / "copy").words == later
    with opened(tmp_path / "copy") as memory:
        assert len(memory) == later
        assert memory.check(deep=True) == []


def test_where_it_lies_must_be_said_and_is_changed_by_moving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_toy(tmp_path / "local") as memory:
        memory.read(some_text(120), "a")
        expected = memory.score("known1 new2 known3").prob.tolist()
    with pytest.raises(StoreError, match="is not on shards; leave the engine out, or read into it"):
        opened(tmp_path / "local", mode="read")
    # Nothing but the address changes.
    with opened(tmp_path / "local") as memory:
        assert memory.score("known1 new2 known3").prob.tolist() == pytest.approx(expected)
        assert any("was brought onto 2 shards" in event for event in memory.events)
    with opened(tmp_path / "local", "here://local", mode="read") as memory:
        assert memory.events == []
        assert memory.score("known1 new2 known3").prob.tolist() == pytest.approx(expected)
    with pytest.raises(StoreError, match="has its keys on 2 shards; give the engine"):
        open_toy(tmp_path / "local")
    with pytest.raises(SettingError, match=r"has 2 shards, not 4; leave .shards= out, or"):
        opened(tmp_path / "local", "here://local?shards=4")
    monkeypatch.setattr(opening, "load_model", lambda path: toy_model())
    for target, engine in (("four", "here://local?shards=4"), ("back", None)):
        for _ in range(2):
            entries = move_memory(tmp_path / "local", tmp_path / target, engine, Path("toy"))
            assert entries > 700
        with open_toy(tmp_path / target, engine=engine) as memory:
            found = memory.score("known1 new2 known3").prob.tolist()
            assert found == pytest.approx(expected)


def test_what_cannot_be_on_shards_is_refused_in_one_line(tmp_path: Path) -> None:
    calls: tuple[tuple[str, Callable[[], Memory]], ...] = (
        ("give a path", lambda: unbounded.open(engine=ENGINE, model=toy_model())),
        ("is no engine", lambda: opened(tmp_path / "m", "mail://x")),
        ("use stop or go-on", lambda: opened(tmp_path / "m", when_unavailable="cry")),
    )
    for match, call in calls:
        with pytest.raises(UnboundedError, match=match):
            call()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "spread.json").write_text("{}")
    with pytest.raises(StoreError, match="is on shards that have journals of their own"):
        opened(tmp_path / "old")
    config = unbounded.MemoryConfig(index="ivfpq")
    with pytest.raises(SettingError, match="index 'ivfpq' cannot be sharded; use flat or auto"):
        opened(tmp_path / "m", config=config)
