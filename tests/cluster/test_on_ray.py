"""Against a real Ray cluster: the same answers, and whatever dies, nothing is lost or doubled."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.nodes import cluster, kill_node, kill_process, node_of
from tests.cluster.streams import WIDTH, about, stream
from tests.memory.texts import open_toy, some_text
from unbounded.cluster import Call, Shard, Sharded, Way, sharded_keys
from unbounded.datastore import Flat
from unbounded.errors import EngineError, Unavailable

pytest.importorskip("ray")

from unbounded.cluster.on_ray import OnRay

# One worker starts one cluster for all of them.
pytestmark = pytest.mark.xdist_group("ray-shards")

K = 20


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    with cluster(nodes=2) as found:
        yield found


def started(folder: Path, shards: int, way: Way = Way()) -> OnRay:
    places = [(str(folder / str(n)), about(shards, shard=n)) for n in range(shards)]
    return OnRay(places, way, threads=1)


def processes(engine: OnRay) -> list[int]:
    return [stats["process"] for stats in engine.every(Call(Shard.stats))]


def changed(engine: OnRay, before: list[int]) -> bool:
    try:
        return processes(engine) != before
    except Unavailable:
        return False  # Its node is being missed only now.


def wait_for(claim: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def read_both(memory: Sharded, local: Flat, keys: Any, words: Any) -> None:
    one, other = memory.read(keys, words, K), local.read(keys, words, K)
    np.testing.assert_array_equal(one.squared, other.squared)
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.words, other.words)


@pytest.mark.parametrize("killed", ["nobody", "an actor", "every actor", "a node"])
def test_whatever_is_killed_while_reading_the_answers_are_those_of_one_memory(
    made: Any, tmp_path: Path, killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded_keys, "SAVED", 4)
    keys, words = stream(400)
    with closing(started(tmp_path, 3)) as engine:
        memory, local, before = Sharded(engine, WIDTH), Flat(WIDTH), list[int]()
        for start in range(0, 400, 50):
            rows = slice(start, start + 50)
            if start == 350 and killed != "nobody":
                wait_for(partial(changed, engine, before))
            if start == 200:
                before = processes(engine)
                # Begun, not answered: the next block is asked while shards die.
                memory.prefetch(keys[rows], K)
                if killed in ("an actor", "every actor"):
                    for pid in before[: 1 if killed == "an actor" else 3]:
                        kill_process(pid)
                elif killed == "a node":
                    nodes = [node_of(made, pid) for pid in before]
                    victim = next(node for node in nodes if node is not made.head_node)
                    kill_node(victim)
                    made.remove_node(victim, allow_graceful=False)
            read_both(memory, local, keys[rows], words[rows])
        held = [stats["entries"] for stats in engine.every(Call(Shard.stats))]
        assert sum(held) == 384


def test_a_shard_that_hangs_is_left_out_and_told_later(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded_keys, "RETRY", 1.0)
    keys, words = stream(3200)
    said: list[str] = []
    with closing(started(tmp_path, 2, Way(3.0, True, say=said.append))) as engine:
        memory, local = Sharded(engine, WIDTH), Flat(WIDTH)
        # First, and so for as long as it takes them to start.
        process = processes(engine)[1]
        read_both(memory, local, keys[:160], words[:160])
        os.kill(process, signal.SIGSTOP)
        try:
            memory.read(keys[160:320], words[160:320], K)
            local.read(keys[160:320], words[160:320], K)
            assert not memory.figures[1].up
            assert "is slow: no answer in 3.0 s" in said[0]
        finally:
            os.kill(process, signal.SIGCONT)
        start, deadline = 320, time.monotonic() + 120
        while not memory.figures[1].up and time.monotonic() < deadline:
            for each in (memory, local):
                each.add(keys[start : start + 32], words[start : start + 32])
            start += 32
            time.sleep(0.5)
        read_both(memory, local, keys[-64:], words[-64:])


def test_a_node_of_this_machine_that_has_ended_is_said(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would end this process without a word."""
    with closing(started(tmp_path, 1)) as engine:
        node = type(engine._ray._private.worker._global_node)
        monkeypatch.setattr(node, "raylet_socket_name", str(tmp_path / "nobody"))
        with pytest.raises(EngineError, match="the node of this machine has ended"):
            engine.share(np.zeros((1, WIDTH), np.float32))
        monkeypatch.undo()


def test_a_memory_goes_on_through_the_death_of_its_shards(made: Any, tmp_path: Path) -> None:
    texts, engine = [some_text(30, seed) for seed in range(4)], f"ray://{made.address}?shards=2"
    with open_toy(tmp_path / "straight") as straight:
        expected = [straight.read(text, "a").prob.tolist() for text in texts]
        asked = straight.score("known1 new2 known3").prob.tolist()
    with open_toy(tmp_path / "m", engine=engine) as memory:
        for number, text in enumerate(texts[:3]):
            if number:
                for shard in memory.stats()["shards"][:number]:
                    kill_process(shard["process"])
            assert memory.read(text, "a").prob.tolist() == pytest.approx(expected[number])
    with open_toy(tmp_path / "m", engine=engine) as memory:
        assert memory.read(texts[3], "a").prob.tolist() == pytest.approx(expected[3])
        kill_process(memory.stats()["shards"][0]["process"])
        assert memory.score("known1 new2 known3").prob.tolist() == pytest.approx(asked)
        assert memory.check(deep=True) == []
