"""Whatever ends an engine behind its bridge, and wherever it is then: the reader goes on."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.streams import WIDTH, here, stream, vocabulary
from unbounded.cluster import Call, Engine, Shard, Sharded
from unbounded.cluster import rpc_client as calls_module
from unbounded.cluster.engine import Pending, T
from unbounded.cluster.queue import own_queue
from unbounded.cluster.subprocess_proxy import SubprocessProxy
from unbounded.errors import EngineError, Unavailable

ABOUT = {"model": "toy", "width": WIDTH, "shards": 2}


def go() -> None:
    os._exit(1)


def be_away() -> None:
    raise Unavailable("the node has ended")


def refuse() -> None:
    raise EngineError("the node has ended")


def fail() -> None:
    raise RuntimeError("nobody expected this")


ENDS: dict[str, Callable[[], None]] = {"go": go, "away": be_away, "refuse": refuse, "fail": fail}


class Ending(Engine):
    """Shards that are in the bridge's process; a file tells where it is to end, and how."""

    def __init__(self, folder: Path) -> None:
        self._how = folder / "how"
        self._end_at("join")
        self.inner = here(folder / "shards", 2)
        self.count = 2

    def _end_at(self, place: str) -> None:
        if self._how.exists():
            places, end = self._how.read_text().split(":")
            if place in places.split():
                ENDS[end]()

    def share(self, array: Any) -> Any:
        self._end_at("share")
        return self.inner.share(array)

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        self._end_at("begin")
        pending = self.inner.begin(shard, call)

        def answer() -> T:
            self._end_at("answer")
            return pending()

        return answer

    def revive(self, shard: int) -> None:
        self._end_at("revive")
        self.inner.revive(shard)

    def gone(self) -> str | None:
        return None

    def answers(self, shard: int) -> bool:
        self.revive(shard)
        self.begin(shard, Call(Shard.held, ""))()
        return True

    def close(self) -> None:
        pass


def check(how: Path) -> None:
    """Nobody to join, unless it is joining that will fail."""
    if how.exists() and "join" not in how.read_text():
        raise Unavailable("nobody answers")


@pytest.mark.parametrize(
    ("place", "end"),
    [
        ("share", "go"),
        ("share", "away"),
        ("share", "refuse"),
        ("begin", "away"),
        ("begin", "refuse"),
        # A shard that fails and a cluster that refuses us are no absence.
        ("answer revive", "go"),
        ("answer revive", "away"),
        ("begin join", "away"),
        ("begin join", "fail"),
    ],
)
def test_an_engine_that_ends_anywhere_leaves_the_reader_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, end: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calls_module, "RETRY", 0.0)
    keys, words = stream(240)
    said: list[str] = []
    queue = own_queue(tmp_path, ABOUT)
    bridge = SubprocessProxy(partial(Ending, tmp_path), 2, partial(check, tmp_path / "how"), 1.0)
    memory = Sharded(
        bridge, vocabulary(), WIDTH, batch=20, patience=0.0, queue=queue, say=said.append
    )
    for start in range(0, 240, 30):
        if start == 90:
            (tmp_path / "how").write_text(f"{place}:{end}")
        if start == 180:
            assert memory.waiting > 0
            (tmp_path / "how").unlink()
        rows = slice(start, start + 30)
        memory.read(keys[rows], words[rows], 10)
    while memory.waiting:
        memory.flush()
    memory.flush()
    assert memory.words_of("stream", 0, 999) == vocabulary().decode(words)
    assert sum(stats["entries"] for stats in memory.stats()) == 240
    # Where the process stays, one shard is missed before the other.
    assert said[0].startswith(("all 2 shards are unavailable (", "shard 0 of 2 is unavailable ("))
    assert "back, and told " in said[-1]
    bridge.close()
    queue.close()
