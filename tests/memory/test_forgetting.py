"""Forgotten is as if never read: in every expert at once, and in every file once compacted."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.texts import open_toy, some_text, state_of, store_of
from unbounded.errors import SettingError
from unbounded.memory import Memory, checkpointing, local
from unbounded.store.layout import snapshot_paths

SECRETS = ["zebra", "quokka", "axolotl", "knownzebra"]


def all_bytes(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@given(
    sizes=st.lists(st.integers(1, 15), min_size=2, max_size=5),
    which=st.integers(0, 4),
    stop=st.booleans(),
    compact=st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_a_forgotten_document_was_never_read(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    which: int,
    stop: bool,
    compact: bool,
) -> None:
    place = tmp_path_factory.mktemp("m")
    which %= len(sizes)
    texts = [some_text(size, seed) for seed, size in enumerate(sizes)]
    texts[which] = some_text(sizes[which], 9, ["known1", *SECRETS])
    with open_toy(place / "never") as never:
        for i, text in enumerate(texts):
            if i != which:
                never.read(text, f"doc{i}")
        after = never.read("known1 known2 new3", "later").prob.tolist()
        expected = state_of(never)
    memory = open_toy(place / "forgot")
    words = [len(memory.read(text, f"doc{i}").words) for i, text in enumerate(texts)]
    if stop:
        memory.close()
        memory = open_toy(place / "forgot")
    assert memory.forget(document=f"doc{which}") == words[which]
    assert not any(secret in memory.online.vocabulary for secret in SECRETS)
    if compact:
        memory.compact()
        assert not any(secret.encode() in all_bytes(place / "forgot") for secret in SECRETS)
        assert f"doc{which}".encode() not in all_bytes(place / "forgot")
    assert memory.read("known1 known2 new3", "later").prob.tolist() == after
    assert state_of(memory) == expected
    assert memory.check(deep=True) == []
    memory.close()
    with open_toy(place / "forgot") as again:
        assert state_of(again) == expected
        assert {p.document for p in again.predict("known1").sources}.isdisjoint({f"doc{which}"})


def test_before_compacting_the_journal_still_has_the_words_and_after_it_nothing_has(
    tmp_path: Path,
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(30), "a")
        memory.backend.snapshot()
        memory.read("the zebra sleeps\nthe zebra eats", "zoo")
        memory.backend.snapshot()
        assert memory.forget(document="zoo") == 8
        assert b"zebra" in store_of(memory).path.read_bytes()
        for path in snapshot_paths(tmp_path / "m", 1):
            assert b"zebra" not in all_bytes(path)
        memory.compact()
        for word in (b"zebra", b"zoo", b"sleeps"):
            assert word not in all_bytes(tmp_path / "m")
        assert memory.stats()["forgotten"] == 0
        assert [d.name for d in store_of(memory).catalog.documents] == ["a"]


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def three_days(folder: Path) -> Memory:
    memory = open_toy(folder)
    for day in (1, 2, 3):
        memory.read(f"known{day} zebra\nknown{day} quokka\nknown7", f"day{day}", time=at(day))
    return memory


def left(memory: Memory) -> list[str]:
    return [word for words in store_of(memory).replay() for word in words]


def test_what_is_older_than_a_day_can_be_forgotten(tmp_path: Path) -> None:
    with three_days(tmp_path / "m") as memory:
        assert memory.forget(before=at(3)) == 16
        entries = store_of(memory).catalog.positions_of(np.arange(len(memory)))
        places = store_of(memory).catalog.where(entries)
        assert [(place.document, place.time) for place in places] == [
            ("day3", at(3).timestamp())
        ] * 8
        assert memory.forget(before=at(3)) == 0


def test_lines_that_match_can_be_forgotten_whatever_their_case(tmp_path: Path) -> None:
    with three_days(tmp_path / "m") as memory:
        assert memory.forget(matching=r"known[13] ZEBRA\b") == 6
        assert left(memory).count("zebra") == 1
        assert left(memory).count("quokka") == 3


@pytest.mark.parametrize(
    ("pattern", "words"),
    # In the last line as words: "<" and "/" are, "</s>" is not, and none ends in s.
    [("</s>", 0), ("<", 10), ("s$", 0), ("/", 10), ("<unk>", 0), ("known2$", 3), ("known1$", 0)],
)
def test_a_pattern_finds_the_end_of_a_line_and_never_its_name(
    tmp_path: Path, pattern: str, words: int
) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2\nnew1 known3\na </s> <unk> b", "a")
        assert memory.forget(matching=pattern) == words


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("^(a+)+$", "takes too long"),
        ("(", "not a regular expression"),
        ("(" * 100_000, "not a regular expression"),
        ("a{99999999999}", "not a regular expression"),
    ],
)
def test_a_pattern_that_never_ends_or_is_none_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, said: str
) -> None:
    monkeypatch.setattr("unbounded.memory.forgetting.SECONDS", 2.0)
    with open_toy(tmp_path / "m") as memory:
        memory.read(f"known1\n{'a' * 40}b", "a")
        with pytest.raises(SettingError, match=said) as caught:
            memory.forget(matching=pattern)
        assert "\n" not in str(caught.value)
        assert len(memory) == 4


def test_a_line_that_lies_in_two_blocks_is_forgotten_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BLOCK", 4)
    with open_toy(tmp_path / "m") as memory:
        memory.read("known1 known2\nknown3 zebra known4 quokka known5\nknown6", "a")
        assert memory.forget(matching="zebra.*quokka") == 6
        assert left(memory) == ["known1", "known2", "</s>", "known6", "</s>"]
        assert memory.check(deep=True) == []


def test_the_last_words_can_be_forgotten_again_and_again(tmp_path: Path) -> None:
    with three_days(tmp_path / "m") as memory:
        whole = left(memory)
        memory.forget(matching="quokka")
        fewer = left(memory)
        assert len(fewer) == len(whole) - 9
        assert memory.forget(last=4) == 4
        assert left(memory) == fewer[:-4]
        assert memory.forget(last=1) == 1
        assert left(memory) == fewer[:-5]
        assert memory.forget(last=10_000) == len(fewer) - 5
        assert len(memory) == 0
        assert memory.forget(last=1) == 0
        memory.compact()
        memory.read("known1", "new")
        assert memory.check(deep=True) == []


def test_forgetting_reads_again_only_what_came_after_a_snapshot(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(50), "a")
        memory.backend.snapshot()
        memory.read(some_text(5, 1), "b")
        told: list[tuple[int, int]] = []
        memory.forget(last=3, show=lambda done, total: told.append((done, total)))
        assert told[-1][0] == told[-1][1] < 60
        assert memory.check(deep=True) == []


def test_forgetting_a_few_words_of_a_few_makes_no_file_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointing, "FEWEST_WORDS", 512)
    with open_toy(tmp_path / "m") as memory:
        for seed, name in enumerate(("one", "two", "three")):
            memory.read(some_text(5, seed), name)
        before = len(all_bytes(tmp_path))
        memory.forget(document="two")
        memory.compact()
        assert len(all_bytes(tmp_path)) < before
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
        # From so many words on there are checkpoints, as ever.
        memory.read(some_text(150, 4), "long")
        memory.forget(document="one")
        assert snapshot_paths(tmp_path / "m", store_of(memory).generation)
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert state_of(memory) == known
