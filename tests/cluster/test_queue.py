"""What waits on disk for shards that are unavailable: in order, once, bounded, and drained."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.streams import WIDTH, here, stream, vocabulary
from tests.cluster.test_sharded_memory import datastore_of, lines, on_shards, shards, words_of
from tests.memory.texts import CONFIG, some_text, toy_model
from unbounded.cluster import Call, Engine, Here, Shard, Sharded
from unbounded.cluster import rpc_client as calls_module
from unbounded.cluster.engine import Pending, T
from unbounded.cluster.messages import Piece
from unbounded.cluster.queue import Queue, own_queue, queues_of, some_waits
from unbounded.errors import EngineError, StoreError, Unavailable
from unbounded.memory import Memory
from unbounded.store import records

ABOUT = {"model": "toy", "width": WIDTH, "shards": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calls_module, "RETRY", 0.0)
    return tmp_path / "cache"


class Failing(Engine):
    """Shards in this process, some of which do not answer; one may have a full disk."""

    def __init__(self, inner: Here) -> None:
        self.inner, self.count = inner, inner.count
        self.lost: set[int] = set()
        self.full: set[int] = set()
        self.revived = 0

    def share(self, array: Any) -> Any:
        return array

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        def fail() -> Any:
            raise Unavailable(f"shard {shard} was told not to answer")

        def no_room() -> Any:
            raise StoreError("the journal could not be written (No space left on device)")

        if shard in self.lost:
            return fail
        if shard in self.full and call.name == "append":
            return no_room
        return self.inner.begin(shard, call)

    def revive(self, shard: int) -> None:
        self.revived += 1

    def answers(self, shard: int) -> bool:
        self.revive(shard)
        return shard not in self.lost

    def close(self) -> None:
        pass

    def gone(self) -> str | None:
        return "nobody answers" if len(self.lost) == self.count else None


def piece(shard: int, first: int, words: int, document: str = "d") -> Piece:
    keys = np.full((words, WIDTH), first, np.float32)
    at = first * 2 + shard
    return Piece(
        document, at, 2, 5.0, np.arange(words), [f"w{at + 2 * i}" for i in range(words)], keys
    )


def queue_of(memory: Path, limit: int = 100_000) -> Queue:
    return own_queue(memory, ABOUT, limit)


def test_what_is_put_is_there_once_after_a_crash_too(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.put([piece(0, 0, 3), piece(0, 3, 2)])
    queue.put([piece(1, 0, 4)])
    # Told again, and a little more.
    queue.put([piece(0, 1, 6)])
    assert (queue.waiting(0), queue.waiting(1)) == (7, 4)
    with queue._path.open("ab") as file:
        file.write(b"torn")
    queue.close()
    again = queue_of(tmp_path)
    assert "none of them was marked as acknowledged" in again.events[0]
    assert [w for p in again.pieces(0) for w in p.words] == [f"w{2 * i}" for i in range(7)]
    assert again.held(0, "d") == 7
    again.drained(0)
    again.close()
    third = queue_of(tmp_path)
    assert third.shards == [1]
    assert some_waits(tmp_path)
    third.drained(1)
    assert not some_waits(tmp_path)
    third.put([piece(1, 4, 1)])
    assert third.waiting(1) == 1
    third.close()


def test_pieces_at_the_limit_of_a_record_wait_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONGEST", 200)
    queue = queue_of(tmp_path)
    queue.put([piece(0, 0, 30)])
    assert queue._journal.records > 5
    with pytest.raises(StoreError, match="can be read back"):
        queue.put([piece(1, 0, 1, "x" * 200)])
    queue.close()
    again = queue_of(tmp_path)
    assert again.events == []
    assert [w for p in again.pieces(0) for w in p.words] == [f"w{2 * i}" for i in range(30)]
    assert again.shards == [0]
    again.close()


def test_what_is_kept_for_the_first_shard_waits_too(tmp_path: Path) -> None:
    engine = Failing(here(tmp_path / "shards", 2))
    queue = queue_of(tmp_path)
    queue.keep("mind", b"whom to believe")
    assert (queue.shards, some_waits(tmp_path)) == ([0], True)
    Sharded(engine, vocabulary(), WIDTH, queue=queue)
    assert engine.inner.shards[0].kept("mind") == b"whom to believe"
    assert (queue.shards, some_waits(tmp_path)) == ([], False)
    queue.close()


def test_a_full_queue_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, limit=1000)
    queue.put([piece(0, 0, 4)])
    with pytest.raises(EngineError, match=r"is full \(0 MB\), and the engine is still unavailable"):
        queue.put([piece(0, 4, 40)])
    assert queue.waiting(0) == 4
    queue.close()


def test_damage_and_another_model_are_refused(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.put([piece(0, 0, 4)])
    queue.close()
    with pytest.raises(StoreError, match=r"a queue of another memory \(shards 2, not 3\)"):
        own_queue(tmp_path, {**ABOUT, "shards": 3})
    size = queue._path.stat().st_size
    with queue._path.open("r+b") as file:
        file.seek(size - 3)
        file.write(b"xx")
    with pytest.raises(StoreError, match="is damaged at byte"):
        queue_of(tmp_path)


def test_two_readers_have_a_queue_each_and_the_next_takes_over_both(tmp_path: Path) -> None:
    one, two = queue_of(tmp_path), queue_of(tmp_path)
    assert one.folder != two.folder
    one.put([piece(0, 0, 4)])
    two.put([piece(0, 0, 2), piece(1, 0, 1, "other")])
    one.close()
    two.close()
    both = queue_of(tmp_path)
    assert (both.waiting(0), both.waiting(1)) == (4, 1)
    assert [path.name for path in queues_of(tmp_path).iterdir()] == ["0"]
    both.close()


def test_reading_goes_on_without_a_shard_and_tells_it_when_it_is_back(tmp_path: Path) -> None:
    keys, words = stream(300)
    engine = Failing(here(tmp_path / "shards", 2))
    said: list[str] = []
    queue = queue_of(tmp_path)
    memory = Sharded(
        engine, vocabulary(), WIDTH, batch=20, patience=0.0, queue=queue, say=said.append
    )
    for start in range(0, 300, 30):
        if start == 90:
            engine.lost = {1}
        if start == 210:
            engine.lost = set()
        rows = slice(start, start + 30)
        found = memory.read(keys[rows], words[rows], 10)
        assert (found.squared[:, 1:] >= found.squared[:, :-1]).all()
        if start == 150:
            # Nothing that only the lost one has, and its entries are not counted.
            assert len(memory) < 180
            assert memory.waiting > 0
    memory.flush()
    assert memory.waiting == 0
    assert len(memory) == 300
    assert memory.words_of("stream", 0, 300) == vocabulary().decode(words)
    assert len(said) == 2
    assert said[0].startswith("shard 1 of 2 is unavailable (shard 1 was told not to answer)")
    assert said[1].startswith("shard 1 of 2 is back, and told ")
    # Everything is found as if nothing had been.
    fresh = Sharded(engine, vocabulary(), WIDTH)
    np.testing.assert_array_equal(
        memory.search(keys[:9], 50).squared, fresh.search(keys[:9], 50).squared
    )
    assert queue._path.stat().st_size < 100
    queue.close()


def test_without_a_queue_reading_stops_with_one_line(tmp_path: Path) -> None:
    keys, words = stream(100)
    engine = Failing(here(tmp_path / "shards", 2))
    memory = Sharded(engine, vocabulary(), WIDTH, batch=20, patience=0.0)
    engine.lost = {0}
    with pytest.raises(EngineError, match="shard 0 of 2 has been unavailable for 0 s"):
        memory.read(keys, words, 10)


def test_a_full_disk_of_a_shard_is_waited_out(tmp_path: Path) -> None:
    keys, words = stream(200)
    engine = Failing(here(tmp_path / "shards", 2))
    said: list[str] = []
    queue = queue_of(tmp_path)
    memory = Sharded(engine, vocabulary(), WIDTH, batch=20, queue=queue, say=said.append)
    engine.full = {0}
    memory.read(keys, words, 10)
    memory.flush()
    assert "No space left on device" in said[0]
    assert 0 < memory.waiting <= 100
    engine.full = set()
    memory.flush()
    assert memory.words_of("stream", 0, 200) == vocabulary().decode(words)
    queue.close()


def test_what_follows_a_document_that_was_forgotten_meanwhile_is_dropped(tmp_path: Path) -> None:
    keys, words = stream(200)
    engine = Failing(here(tmp_path / "shards", 2))
    said: list[str] = []
    queue = queue_of(tmp_path)
    memory = Sharded(
        engine, vocabulary(), WIDTH, batch=20, patience=0.0, queue=queue, say=said.append
    )
    memory.read(keys[:100], words[:100], 10)
    memory.flush()
    engine.lost = {0, 1}
    memory.read(keys[100:], words[100:], 10)
    memory.flush()
    assert memory.waiting == 100
    for shard in engine.inner.shards:
        shard.forget(["stream"])
    engine.lost = set()
    memory.flush()
    assert memory.waiting == 0
    assert len(memory) == 0
    dropped = [line for line in said if "were dropped; read the document again" in line]
    assert len(dropped) == 2
    queue.close()


def spread_on(folder: Path, engine: Engine, said: list[str]) -> tuple[Memory, Queue]:
    queue = own_queue(folder, ABOUT)
    memory = on_shards(
        *(folder, engine, toy_model(), CONFIG), patience=0.0, queue=queue, say=said.append
    )
    return memory, queue


def test_a_reader_whose_engine_is_away_from_the_beginning(tmp_path: Path) -> None:
    text, more = some_text(300), some_text(50, seed=2)
    engine = Failing(shards(tmp_path, 2))
    engine.lost = {0, 1}
    said: list[str] = []
    memory, _ = spread_on(tmp_path, engine, said)
    readings = list(memory.follow(lines(text, "letter")))
    assert len(said) == 1
    assert said[0].startswith("all 2 shards are unavailable (nobody answers): reading goes on")
    probs = np.concatenate([reading.prob for reading in readings])
    assert ((probs > 0) & (probs < 1)).all()
    assert memory.backend.waiting == len(words_of(text))
    memory.close()
    # Still unavailable: what waits is known, and not read again; more comes behind it.
    memory, _ = spread_on(tmp_path, engine, said)
    assert list(memory.follow(lines(text, "letter"))) == []
    assert memory.backend.known == len(words_of(text))
    list(memory.follow(lines(more, "diary")))
    memory.close()
    engine.lost = set()
    memory, _ = spread_on(tmp_path, engine, said)
    assert memory.backend.waiting == 0
    assert said[-1].startswith("all 2 shards are back, and told ")
    assert len(memory) == len(words_of(text)) + len(words_of(more))
    assert datastore_of(memory).words_of("letter", 0, 9999) == words_of(text)
    assert datastore_of(memory).words_of("diary", 0, 9999) == words_of(more)
    # What it had learned of whom to believe has come too.
    assert engine.inner.shards[0].kept("mind") is not None
    memory.close()


def test_a_reader_killed_while_the_queue_holds_things(tmp_path: Path) -> None:
    text = some_text(300)
    engine = Failing(shards(tmp_path, 2))
    memory, queue = spread_on(tmp_path, engine, [])
    stream = memory.follow(lines(text, "letter"))
    next(stream)
    engine.lost = {1}
    next(stream)
    datastore_of(memory)._calls.answer(1, Call(Shard.held, ""))
    assert queue.waiting(1) > 0
    # As kill -9 leaves it: closing writes nothing.
    queue.close()
    engine.lost = set()
    memory, _ = spread_on(tmp_path, engine, [])
    list(memory.follow(lines(text, "letter")))
    assert datastore_of(memory).words_of("letter", 0, 9999) == words_of(text)
    assert len(memory) == len(words_of(text))
    memory.close()
