"""After a restart, everything is as if it had never stopped; and what is damaged is named."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.keep.texts import CONFIG, open_toy, some_text, state_of, toy_model
from unbounded.config import MemoryConfig
from unbounded.errors import StoreError
from unbounded.keep import kept
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
            memory.snapshot()
        elif stop != "no":
            # A crash is what leaves no snapshot.
            (memory if stop == "close" else memory.store).close()
            memory = open_toy(place / "stopped")
    assert state_of(memory) == whole
    assert memory.check(deep=True) == []
    memory.close()


def test_blocks_are_read_again_as_they_were_cut_and_snapshots_come_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "BLOCK", 32)
    monkeypatch.setattr(kept, "SYNCED", 100)
    monkeypatch.setattr(kept, "STEP_WORDS", 200)
    text = some_text(150)
    memory = open_toy(tmp_path / "m", config=MemoryConfig(index="auto", k=8, window=16))
    memory.read(text, "a")
    known = state_of(memory)
    memory.store.aside.reap(wait=True)
    assert 1 <= len(snapshot_paths(tmp_path / "m", 1)) <= 2
    memory.store.close()
    again = open_toy(tmp_path / "m", config=None)
    assert state_of(again) == known
    assert 0 < again._since < 250
    again.close()
    # From the very beginning it is the same.
    for path in snapshot_paths(tmp_path / "m", 1):
        shutil.rmtree(path)
    with open_toy(tmp_path / "m", config=None) as scratch:
        assert state_of(scratch) == known


def test_a_memory_that_has_outgrown_its_full_vocabulary_widens_it(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        assert memory._mind.size == 32
        heard = memory.read("\n".join(f"word{i}" for i in range(400)), "a")
        assert (heard.prob > 0).all()
        assert memory._mind.size == 1024
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
        path = memory.store.path
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
        memory._mind.read(["known1"])
        assert {"unbounded has seen", "recent has seen"} <= {
            " ".join(finding.what.split()[:3]) for finding in memory.check()
        }
        assert len(memory.check(deep=True)) > len(memory.check())


def test_what_a_failure_while_learning_left_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2", "a")
        known, size = state_of(memory), memory.store.end

        def fail(words: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(memory._mind, "read", fail)
        with pytest.raises(KeyboardInterrupt):
            memory.read("known3", "b")
        assert memory.store.end == size
        with pytest.raises(StoreError, match="open it again"):
            memory.read("known3", "b")
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        assert [document.name for document in memory.store.ledger.documents] == ["a"]


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
