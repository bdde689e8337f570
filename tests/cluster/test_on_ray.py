"""Against a real Ray cluster: the same answers, and whatever dies, nothing is lost or doubled."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.nodes import cluster, kill_node, kill_process, node_of
from tests.cluster.streams import WIDTH, about, stream, vocabulary
from unbounded.cluster import Call, Shard, Sharded
from unbounded.cluster import rpc_client as calls
from unbounded.cluster.queue import own_queue
from unbounded.datastore import Flat, Neighbors
from unbounded.errors import Unavailable

pytest.importorskip("ray")

from unbounded.cluster.on_ray import OnRay

# One worker starts one cluster for all of them.
pytestmark = pytest.mark.xdist_group("ray-shards")

K = 20


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    with cluster(nodes=2) as found:
        yield found


def started(made: Any, folder: Path, shards: int) -> OnRay:
    """An engine with a shard away from the head: Ray passes over a node that is not ready yet."""
    for attempt in range(10):
        engine = OnRay(folder / f"memory-{attempt}", about(), shards)
        processes = [engine.begin(shard, Call(Shard.stats))()["process"] for shard in range(shards)]
        if any(node_of(made, pid) is not made.head_node for pid in processes):
            return engine
        engine.kill()
        time.sleep(1)
    raise AssertionError("no shard was ever put on a node beside the head")


def check_same(found: Neighbors, truth: Neighbors) -> None:
    found, truth = found.in_order(), truth.in_order()
    np.testing.assert_allclose(found.squared, truth.squared, atol=1e-5)
    # What is equally far but for rounding may change places.
    differ = found.positions != truth.positions
    assert differ.mean() < 0.05
    np.testing.assert_array_equal(found.words[~differ], truth.words[~differ])


def check_whole(memory: Sharded, words: np.ndarray) -> None:
    """Every word of the stream is there, once, in its place."""
    memory.flush()
    assert sum(stats["entries"] for stats in memory.stats()) == len(words)
    assert memory.words_of("stream", 0, len(words) + 9) == vocabulary().decode(words)


@pytest.mark.parametrize("killed", ["nobody", "an actor", "every actor", "a node"])
def test_whatever_is_killed_while_reading_the_answers_are_those_of_one_memory(
    made: Any, tmp_path: Path, killed: str
) -> None:
    keys, words = stream(400)
    local = Flat(WIDTH)
    engine = started(made, tmp_path, 3)
    memory = Sharded(engine, vocabulary(), WIDTH, batch=32)
    try:
        for start in range(0, 400, 50):
            if start == 200:
                processes = [stats["process"] for stats in memory.stats()]
                # Begun, not answered: the next block is handed on and asked while shards die.
                if killed in ("an actor", "every actor"):
                    for pid in processes[: 1 if killed == "an actor" else 3]:
                        kill_process(pid)
                elif killed == "a node":
                    nodes = [node_of(made, pid) for pid in processes]
                    victim = next(node for node in nodes if node is not made.head_node)
                    kill_node(victim)
                    made.remove_node(victim, allow_graceful=False)
            rows = slice(start, start + 50)
            found = memory.read(keys[rows], words[rows], K)
            check_same(found, local.read(keys[rows], words[rows], K))
        check_whole(memory, words)
        if killed != "nobody":
            assert memory.resent > 0
            assert [stats["process"] for stats in memory.stats()] != processes
    finally:
        engine.kill()


def test_a_shard_that_is_killed_with_a_batch_on_its_way_has_it_once(
    made: Any, tmp_path: Path
) -> None:
    keys, words = stream(320)
    engine = OnRay(tmp_path / "memory", about(), 2)
    memory = Sharded(engine, vocabulary(), WIDTH, batch=32)
    try:
        processes = [stats["process"] for stats in memory.stats()]
        for start in range(0, 320, 32):
            # Sent and not waited for; then one of them dies, sooner or later.
            memory.add(keys[start : start + 32], words[start : start + 32])
            if start == 160:
                time.sleep(0.02)
                kill_process(processes[1])
        check_whole(memory, words)
        assert memory.resent > 0
    finally:
        engine.kill()


def test_a_shard_that_hangs_is_left_out_and_told_later(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calls, "RETRY", 2.0)
    keys, words = stream(320)
    engine = OnRay(tmp_path / "memory", about(), 2)
    queue, said = own_queue(tmp_path / "memory", {"shards": 2}), list[str]()
    memory = Sharded(
        *(engine, vocabulary(), WIDTH), batch=32, patience=0.5, queue=queue, say=said.append
    )
    process = memory.stats()[1]["process"]
    try:
        memory.read(keys[:160], words[:160], K)
        engine._patience = 3.0
        os.kill(process, signal.SIGSTOP)
        memory.read(keys[160:], words[160:], K)
        assert memory.waiting > 0
        assert "is slow: no answer in 3.0 s" in said[0]
        os.kill(process, signal.SIGCONT)
        engine._patience = 60.0
        deadline = time.monotonic() + 120
        while memory.waiting and time.monotonic() < deadline:
            memory.flush()
            time.sleep(0.1)
        # Batches that it was sent before it hung came twice, and are there once.
        check_whole(memory, words)
    finally:
        os.kill(process, signal.SIGCONT)
        engine.kill()
        queue.close()


def test_a_node_of_this_machine_that_has_ended_is_an_absence(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a fault: a reader with a queue goes on, and joins again when it is back."""
    engine = OnRay(tmp_path / "memory", about(), 1)
    shared = engine.share(np.zeros((1, WIDTH), np.float32))
    node = type(engine._ray._private.worker._global_node)
    monkeypatch.setattr(node, "raylet_socket_name", str(tmp_path / "nobody"))
    # Looked at once a second, and when an array has to be put there again.
    engine._looked = -10.0
    with pytest.raises(Unavailable, match="the node of this machine has ended"):
        engine.share(np.zeros((1, WIDTH), np.float32))
    engine._looked, engine._era = -10.0, engine._era + 1
    with pytest.raises(Unavailable, match="the node of this machine has ended"):
        engine.begin(0, Call(Shard.search, shared, 1, 0, 0))
    monkeypatch.undo()
    engine.kill()


def _write(folder: str, address: str, document: str, count: int) -> None:
    """A writer in a process of its own; its vocabulary has other numbers for the same words."""
    from unbounded.cluster.engine import Address
    from unbounded.cluster.on_ray import connect

    connect(Address.parse(f"ray://{address}"))
    known = vocabulary()
    numbers = known.encode([f"{document}{i}" for i in range(7)])
    memory = Sharded(OnRay(Path(folder), about(), 2), known, WIDTH, batch=16, document=document)
    keys, words = stream(count, seed=len(document))
    for start in range(0, count, 10):
        rows = slice(start, start + 10)
        memory.read(keys[rows], numbers[words[rows] % 7], K)
    memory.flush()


def test_two_write_and_a_third_asks_meanwhile(made: Any, tmp_path: Path) -> None:
    folder, documents = tmp_path / "memory", ("near", "further")
    engine = OnRay(folder, about(), 2)
    known = vocabulary()
    reader = Sharded(engine, known, WIDTH)
    try:
        start = multiprocessing.get_context("spawn").Process
        writers = [
            start(target=_write, args=(str(folder), made.address, name, 300)) for name in documents
        ]
        for writer in writers:
            writer.start()
        counts = []
        while any(writer.is_alive() for writer in writers):
            found = reader.search(np.zeros((1, WIDTH), np.float32), 1000)
            counts.append(found.positions.shape[1])
            # Nobody is there twice, and every word is one of those that were written.
            assert len(np.unique(found.positions)) == counts[-1]
            assert all(w.startswith(documents) for w in known.decode(found.words[0]))
            time.sleep(0.02)
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        assert counts == sorted(counts)
        assert len(reader.search(np.zeros((1, WIDTH), np.float32), 1000).words[0]) == 600
        for name in documents:
            _, words = stream(300, seed=len(name))
            assert reader.words_of(name, 0, 300) == [f"{name}{w % 7}" for w in words]
            keys = stream(300, seed=len(name))[0]
            found = reader.search(keys[7:8], 1)
            (place,) = reader.where(found.positions[0].tolist())
            assert place.document == name
        assert reader.forget(["near"]) == 300
        left = reader.search(np.zeros((1, WIDTH), np.float32), 1000)
        assert all(w.startswith("further") for w in known.decode(left.words[0]))
        assert left.words.shape == (1, 300)
    finally:
        engine.kill()
