"""Looking after a memory on shards: forgetting whole documents, checking, compacting, exporting."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.test_sharded_memory import datastore_of, lines, on_shards, shards, words_of
from tests.memory.texts import CONFIG, toy_model
from unbounded.cluster import Here
from unbounded.errors import SettingError
from unbounded.memory import Memory

TEXTS = {
    "diary": "known1 hush hush\nknown2 known3",
    "letter": "dear known1\nknown2 of the hush\nyours",
    "notes": "known4\nknown5 known6 known7",
}


def read_texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Memory, Here]:
    """Each text was read on a day of its own."""
    engine = shards(folder)
    memory = on_shards(folder, engine, toy_model(), CONFIG)
    for day, (name, text) in enumerate(TEXTS.items(), 1):
        when = datetime(2026, 3, day, tzinfo=UTC).timestamp()
        monkeypatch.setattr("time.time", lambda when=when: when)
        list(memory.follow(lines(text, name)))
    return memory, engine


def left(memory: Memory) -> set[str]:
    return {name for shard in datastore_of(memory).stats() for name in shard["documents"]}


def holds(folder: Path, word: str) -> bool:
    files = (path for path in folder.rglob("*") if path.is_file())
    return any(word.encode() in path.read_bytes() for path in files)


def test_documents_read_before_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = read_texts(tmp_path, monkeypatch)
    assert memory.forget(before=datetime(2026, 3, 2, 12, tzinfo=UTC)) == len(
        words_of(TEXTS["diary"]) + words_of(TEXTS["letter"])
    )
    assert left(memory) == {"notes"}
    assert datastore_of(memory).words_of("notes", 0, 99) == words_of(TEXTS["notes"])
    assert not holds(tmp_path, "hush")
    # Nothing is that old any more.
    assert memory.forget(before=datetime(2026, 3, 2, tzinfo=UTC)) == 0


def test_documents_with_a_line_that_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a line lie on different shards."""
    memory, _ = read_texts(tmp_path, monkeypatch)
    # Not over the end of a line.
    assert memory.forget(matching="hush known2") == 0
    assert memory.forget(matching="of THE hush") == len(words_of(TEXTS["letter"]))
    assert left(memory) == {"diary", "notes"}
    with pytest.raises(SettingError, match="is not a regular expression"):
        memory.forget(matching="(")


def test_check_finds_what_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, engine = read_texts(tmp_path, monkeypatch)
    assert memory.check() == []
    engine.shards[1].snapshot()
    (snapshot,) = engine.shards[1].folder.glob("snapshot-*")
    part = max(snapshot.iterdir(), key=lambda path: path.stat().st_size)
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    (finding,) = memory.check()
    assert finding.where == str(snapshot)
    assert "made again from the journal" in finding.advice
    path = engine.shards[2]._path
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b"xx")
    assert [finding.where for finding in memory.check()] == [str(snapshot), str(path)]


def test_compacted_it_answers_the_same_and_opens_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, engine = read_texts(tmp_path, monkeypatch)
    memory.forget("diary")
    before = [shard.words("letter", 0, 99) for shard in engine.shards]
    assert min(memory.compact()) > 0
    for shard in engine.shards:
        shard.close()
    again = shards(tmp_path)
    assert [shard.words("letter", 0, 99) for shard in again.shards] == before
    assert [finding for shard in again.shards for finding in shard.check()] == []
    assert not holds(tmp_path, "hush hush")
