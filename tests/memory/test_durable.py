"""After a restart, everything is as if it had never stopped; and what is damaged is named."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.texts import (
    CONFIG,
    FIRST_EDITION,
    open_toy,
    some_text,
    state_of,
    store_of,
    toy_model,
)
from unbounded.corpus import lines_of
from unbounded.errors import StoreError
from unbounded.memory import Memory, checkpointing, local
from unbounded.presets import MemoryConfig
from unbounded.store.layout import snapshot_paths


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    stops=st.lists(st.sampled_from(["no", "close", "crash", "snapshot"]), min_size=6, max_size=6),
)
@settings(max_examples=15, deadline=None)
def test_stopping_anywhere_and_going_on_equals_never_stopping(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], stops: list[str]
) -> None:
    place = tmp_path_factory.mktemp("m")
    texts = [some_text(size, seed) for seed, size in enumerate(sizes)]
    with open_toy(place / "straight") as straight:
        expected = [straight.read(text, "a").prob for text in texts]
        whole = state_of(straight)
    memory = open_toy(place / "stopped")
    for text, stop, probs in zip(texts, stops, expected, strict=False):
        assert memory.read(text, "a").prob.tolist() == probs.tolist()
        if stop == "snapshot":
            memory.backend.snapshot()
        elif stop != "no":
            # A crash is what leaves no snapshot.
            (memory if stop == "close" else store_of(memory)).close()
            memory = open_toy(place / "stopped")
    assert state_of(memory) == whole
    assert memory.check(deep=True) == []
    memory.close()


def test_blocks_are_read_again_as_they_were_cut_and_snapshots_come_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK", 32)
    monkeypatch.setattr(local, "SYNCED", 100)
    monkeypatch.setattr(checkpointing, "DELTA_WORDS", 200)
    text = some_text(150)
    memory = open_toy(tmp_path / "m", config=MemoryConfig(index="auto", k=8, window=16))
    memory.read(text, "a")
    known = state_of(memory)
    memory.backend.saving.reap(wait=True)
    assert 1 <= len(snapshot_paths(tmp_path / "m", 1)) <= 2
    store_of(memory).close()
    again = open_toy(tmp_path / "m", config=None)
    assert state_of(again) == known
    assert 0 < again.backend.saving.since < 250
    again.close()
    # From the very beginning it is the same.
    for path in snapshot_paths(tmp_path / "m", 1):
        shutil.rmtree(path)
    with open_toy(tmp_path / "m", config=None) as scratch:
        assert state_of(scratch) == known


def test_a_memory_that_has_outgrown_its_full_vocabulary_widens_it(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m", preset=FIRST_EDITION) as memory:
        assert memory.backend.learned.size == 32
        heard = memory.read("\n".join(f"word{i}" for i in range(400)), "a")
        assert (heard.prob > 0).all()
        assert memory.backend.learned.size == 1024
        known = state_of(memory)
        probs = memory.online.predict().dense(1024)
        np.testing.assert_allclose(probs.sum(), 1, rtol=1e-9)
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        heard = memory.read("word1 word2", "b")


@pytest.mark.parametrize("name", ["arrays.npy", "manifest.json"])
def test_a_damaged_snapshot_is_named_and_made_again_from_the_journal(
    tmp_path: Path, name: str
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        known = state_of(memory)
    (newest,) = snapshot_paths(tmp_path / "m", 1)
    data = bytearray((newest / name).read_bytes())
    data[len(data) // 2] ^= 1
    (newest / name).write_bytes(data)
    with open_toy(tmp_path / "m", mode="read") as memory:
        assert state_of(memory) == known
        assert any(newest.name in event and "damaged" in event for event in memory.events)
        (finding,) = memory.check()
        assert finding.where.endswith(newest.name)
        assert "remove that folder" in finding.advice


@pytest.mark.parametrize("advised", [True, False])
def test_what_was_set_aside_before_a_repair_is_not_taken_for_what_came_after(
    tmp_path: Path, advised: bool
) -> None:
    """The journal is cut where it was damaged, or restored from a copy; then it grows again."""
    when = datetime(2026, 11, 17, tzinfo=UTC)
    memory = open_toy(tmp_path / "m")
    memory.read(some_text(9), "a", time=when)
    first, mark = store_of(memory).journal.end, (tmp_path / "m" / "acknowledged").read_bytes()
    memory.read("secret1 secret2", "b", time=when)
    memory.backend.snapshot()
    store_of(memory).close()
    if advised:
        data = bytearray(store_of(memory).path.read_bytes())
        data[first + 40] ^= 1
        store_of(memory).path.write_bytes(data)
        with pytest.raises(StoreError, match="remove the file 'acknowledged'"):
            open_toy(tmp_path / "m")
        (tmp_path / "m" / "acknowledged").unlink()
    else:
        store_of(memory).path.write_bytes(store_of(memory).path.read_bytes()[:first])
        (tmp_path / "m" / "acknowledged").write_bytes(mark)
    with open_toy(tmp_path / "m") as memory:
        assert any("is of another history" in event for event in memory.events)
        assert not any("never acknowledged" in event for event in memory.events)
        # As long as what was there before.
        memory.read("public1 public2", "c", time=when)
        store_of(memory).close()
    with open_toy(tmp_path / "m") as memory, open_toy(tmp_path / "other") as other:
        other.read(some_text(9), "a", time=when)
        other.read("public1 public2", "c", time=when)
        assert state_of(memory) == state_of(other)
        assert "secret1" not in memory.online.vocabulary
        # The next one that is set aside takes their place.
        memory.backend.snapshot()
    with open_toy(tmp_path / "m") as memory:
        assert memory.events == []


def test_what_is_set_aside_must_have_as_many_entries_as_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        known = state_of(memory)
        fewer = {**memory.backend.learned.state(), **_fewer(memory)}
        monkeypatch.setattr(memory.backend.learned, "state", lambda: fewer)
        memory.backend.snapshot()
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert any("entries where the journal has others" in event for event in memory.events)


def _fewer(memory: Memory) -> dict[str, np.ndarray]:
    """The state of a memory that has read less."""
    with open_toy(store_of(memory).folder.with_name("less")) as less:
        less.read("known1", "a")
        return less.backend.learned.state()


def test_a_damaged_format_is_named(tmp_path: Path) -> None:
    open_toy(tmp_path / "m").close()
    path = tmp_path / "m" / "format.json"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=r"format\.json"):
            open_toy(tmp_path / "m")


def test_check_sees_a_journal_that_rots_while_it_is_open(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        assert memory.check() == []
        path = store_of(memory).path
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        (finding,) = memory.check()
        assert finding.where == str(path)
        data[-1] ^= 1
        path.write_bytes(data)


def test_check_compares_the_state_with_what_reading_again_gives(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(20), "a")
        assert memory.check(deep=True) == []
        memory.backend.learned.read(["known1"])
        assert {"unbounded has seen", "cache_1024 has seen"} <= {
            " ".join(finding.what.split()[:3]) for finding in memory.check()
        }
        assert len(memory.check(deep=True)) > len(memory.check())


def test_what_a_failure_while_learning_left_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2", "a")
        known, size = state_of(memory), store_of(memory).journal.end

        def fail(words: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(memory.backend.learned, "read", fail)
        with pytest.raises(KeyboardInterrupt):
            memory.read("known3", "b")
        assert (store_of(memory).journal.end, state_of(memory)) == (size, known)
        # Of lines that were given out one after another, the rest stays: it has to be opened again.
        monkeypatch.setattr(memory.backend.learned, "read", fail)
        with pytest.raises(KeyboardInterrupt):
            list(memory.follow(lines_of("known3", "b", 1)))
        with pytest.raises(StoreError, match="open it again"):
            memory.read("known3", "b")
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert [document.name for document in store_of(memory).catalog.documents] == ["a"]


def test_two_memories_of_one_model_have_nothing_in_common(tmp_path: Path) -> None:
    model = toy_model()
    with open_toy(tmp_path / "alone", model) as alone:
        alone.read(some_text(20, 1), "b")
        expected = state_of(alone)
    with open_toy(tmp_path / "one", model) as one, open_toy(tmp_path / "two", model) as two:
        for line in some_text(20, 2, ["secret", "known1"]).split("\n"):
            one.read(line, "a")
        two.read(some_text(20, 1), "b")
        assert state_of(two) == expected
        assert "secret" not in two.online.vocabulary
        assert "secret" not in model.vocabulary
        assert {p.document for p in two.predict("known1", 20).sources} == {"b"}
        assert {p.document for p in one.predict("known1", 20).sources} == {"a"}
    assert b"secret" not in b"".join(f.read_bytes() for f in (tmp_path / "two").rglob("*.*"))
    assert CONFIG.index == "flat"
