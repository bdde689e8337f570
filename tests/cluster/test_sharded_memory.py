"""A memory on shards as its users open it; the shards are in this process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.memory.texts import CONFIG, local_of, open_toy, some_text, store_of, toy_model
from unbounded.cluster import Engine, Here, Shard, Sharded
from unbounded.corpus import Line
from unbounded.errors import EngineError, SettingError
from unbounded.lm import Pretrained
from unbounded.memory import Memory
from unbounded.memory.moving import _compare, _from_one_place, _gathered, _into
from unbounded.memory.shards import ShardedBackend
from unbounded.presets import MemoryConfig, build_online
from unbounded.store import Store


def shards(folder: Path, count: int = 3) -> Here:
    model = toy_model()
    about = {"width": model.lm.width, "index": "flat", "exact": None, "model": model.fingerprint}
    return Here([Shard(str(folder / f"shard-{i}"), about) for i in range(count)])


def on_shards(
    folder: Path, engine: Engine, model: Pretrained, config: MemoryConfig, **more: Any
) -> Memory:
    return Memory(ShardedBackend(folder, engine, model, config, **more), model)


def shards_of(memory: Memory) -> ShardedBackend:
    assert isinstance(memory.backend, ShardedBackend)
    return memory.backend


def datastore_of(memory: Memory) -> Sharded:
    return shards_of(memory).datastore


def lines(text: str, document: str) -> list[Line]:
    return [Line(document, number, line) for number, line in enumerate(text.split("\n"), 1)]


def words_of(text: str) -> list[str]:
    return [word for line in text.split("\n") for word in [*line.split(), "</s>"]]


def test_one_reader_scores_a_document_as_without_shards(tmp_path: Path) -> None:
    text = some_text(300)
    memory = on_shards(tmp_path, shards(tmp_path), toy_model(), CONFIG)
    readings = list(memory.follow(lines(text, "letter")))
    experts = list(memory.online.experts)
    local = build_online(toy_model(), shards_of(memory)._size, experts, CONFIG, oov="unk")
    expected = local.read(words_of(text))
    assert sum(len(reading.words) for reading in readings) == len(expected.words) > 1024
    nats = -np.log(np.concatenate([reading.prob for reading in readings]))
    # States of the toy nearly coincide, so that rounding shows in single words: measured 0.07 nats
    # at the most (0.6 where one memory without shards is cut otherwise), 3e-6 of the mean.
    np.testing.assert_allclose(nats, -np.log(expected.prob), atol=0.1)
    assert nats.mean() == pytest.approx(-np.log(expected.prob).mean(), rel=2e-4)


def test_reading_again_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    text = some_text(400)
    engine = shards(tmp_path)
    first = on_shards(tmp_path, engine, toy_model(), CONFIG)
    stream = first.follow(lines(text, "letter"))
    scores = [next(stream).prob]
    # It dies after 1,024 words, which were handed on and not acknowledged.
    assert all(datastore_of(first)._calls.unacknowledged)
    second = on_shards(tmp_path, engine, toy_model(), CONFIG)
    scores += [reading.prob for reading in second.follow(lines(text, "letter"))]
    assert second.backend.known == 1024
    whole = words_of(text)
    assert sum(map(len, scores)) == len(whole)
    assert datastore_of(second).words_of("letter", 0, len(whole)) == whole
    assert len(second) == len(whole)
    # A third time there is nothing left to read.
    third = on_shards(tmp_path, engine, toy_model(), CONFIG)
    assert list(third.follow(lines(text, "letter"))) == []
    assert len(third) == len(whole)


def test_a_shard_that_was_behind_is_told_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = some_text(400)
    engine = shards(tmp_path)
    first = on_shards(tmp_path, engine, toy_model(), CONFIG)
    with monkeypatch.context() as patch:
        patch.setattr(engine.shards[2], "append", lambda pieces: 0)
        next(first.follow(lines(text, "letter")))
    assert [shard.held("letter") for shard in engine.shards] == [342, 341, 0]
    second = on_shards(tmp_path, engine, toy_model(), CONFIG)
    list(second.follow(lines(text, "letter")))
    assert datastore_of(second).words_of("letter", 0, 9999) == words_of(text)
    assert len(second) == len(words_of(text))


def test_a_document_makes_the_same_entries_whatever_was_read_before(tmp_path: Path) -> None:
    """So that forgetting one leaves no trace in another."""
    letter, diary = some_text(40, seed=1), some_text(40, seed=2, words=["hush", "known1"])
    one, other = shards(tmp_path / "one"), shards(tmp_path / "other")
    both = on_shards(tmp_path, one, toy_model(), CONFIG)
    list(both.follow([*lines(diary, "diary"), *lines(letter, "letter")]))
    alone = on_shards(tmp_path, other, toy_model(), CONFIG)
    list(alone.follow(lines(letter, "letter")))
    files = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert any(b"hush" in path.read_bytes() for path in files)
    assert both.forget("diary") == len(words_of(diary))
    files = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert not any(b"hush" in path.read_bytes() for path in files)
    queries = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    found = [datastore_of(memory).search(queries, 50) for memory in (both, alone)]
    np.testing.assert_array_equal(found[0].squared, found[1].squared)
    with pytest.raises(SettingError, match="has no document named 'diary'"):
        both.forget("diary")


def test_a_reader_that_comes_later_believes_and_finds_what_the_writer_did(tmp_path: Path) -> None:
    engine = shards(tmp_path)
    writer = on_shards(tmp_path, engine, toy_model(), CONFIG)
    text = "\n".join(["the zorble ate the grass", "known1 known2"] * 40)
    list(writer.follow(lines(text, "zoo")))
    reader = on_shards(tmp_path, engine, toy_model(), CONFIG)
    found, same = (memory.predict("the zorble ate the", 3) for memory in (reader, writer))
    assert [guess.word for guess in found.words] == [guess.word for guess in same.words]
    np.testing.assert_allclose(
        [guess.prob for guess in found.words], [guess.prob for guess in same.words], rtol=1e-5
    )
    assert found.words[0].word == "grass"
    assert found.words[0].sources[0].document == "zoo"
    assert "zorble ate the grass" in found.words[0].sources[0].text
    assert reader.stats()["documents"] == 1
    before = len(reader)
    assert "grass" in reader.complete("the zorble ate the", 30, temperature=1.0, seed=1)
    (surprise,) = reader.scoring(lines("the zorble ate the grass", "asked"))
    assert surprise.prob[4] > surprise.static[4]
    assert len(reader) == before


def test_a_memory_in_one_place_is_moved_onto_shards(tmp_path: Path) -> None:
    text = some_text(120)
    with open_toy(tmp_path / "kept") as kept:
        kept.read(text, "letter")
        kept.read("known1 zorble\nknown2", "diary", line=7)
        kept.forget(last=2)
    store = Store(tmp_path / "kept", write=False)
    memory = on_shards(tmp_path, shards(tmp_path / "new"), toy_model(), CONFIG)
    moved = [_from_one_place(store, shards_of(memory), lambda done: None) for _ in range(2)]
    store.close()
    expected = [*words_of("known1 zorble\nknown2")[:-2]]
    assert moved == [len(words_of(text)) + len(expected)] * 2
    assert datastore_of(memory).words_of("diary", 0, 99) == expected
    found = datastore_of(memory).search(datastore_of(memory)._recent.index.keys[:0], 1)
    assert found.words.shape == (0, 1)
    # And back: what is read there is what was read here, and a move that stopped goes on.
    with open_toy(tmp_path / "back") as back:
        stopped = False

        def stop(done: int) -> None:
            nonlocal stopped
            if done > 300 and not stopped:
                stopped = True
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            _into(local_of(back), shards_of(memory).engine, stop)
        assert _into(local_of(back), shards_of(memory).engine, stop) == moved[0]
        assert len(back) == moved[0]
        words, places = _gathered(store_of(back))
        assert words == {"letter": words_of(text), "diary": expected}
        assert np.concatenate(places["diary"]).tolist() == [7, 7, 7]
        _compare(words, shards_of(memory).engine)
        with pytest.raises(EngineError, match="'diary' has 3 entries on shards and 2 in one place"):
            _compare({**words, "diary": expected[:2]}, shards_of(memory).engine)
