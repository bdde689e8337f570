"""Memories on shards under a service: their figures are shown, and they are refused as such."""

import time
from pathlib import Path

import pytest

from tests.cluster.streams import about
from tests.serve.running_service import Client, in_thread
from unbounded.cluster.connecting import NAME
from unbounded.lm import Pretrained
from unbounded.serve.observing import ShardWatcher
from unbounded.store.disk import RealDisk, sealed, write_file

pytest.importorskip("ray")


def on_paper(folder: Path) -> None:
    """A memory on shards as the folder shows it."""
    folder.mkdir()
    write_file(RealDisk(), folder / NAME, sealed({"shards": 2, **about()}))


def test_one_on_shards_is_refused_by_what_it_is(tmp_path: Path, model: Pretrained) -> None:
    on_paper(tmp_path / "spread")
    with in_thread(tmp_path, model) as url:
        client = Client(url)
        assert client.refused(409, "GET", "/v1/memories/spread") == "on_shards"
        assert client.refused(409, "POST", "/v1/memories", {"name": "spread"}) == "on_shards"


def test_an_engine_that_is_away_is_shown_as_that(tmp_path: Path) -> None:
    on_paper(tmp_path / "spread")
    watch = ShardWatcher(tmp_path, "ray://127.0.0.1:1", every=0.1)
    watch.start()
    deadline = time.monotonic() + 60
    while not watch.latest and time.monotonic() < deadline:
        time.sleep(0.05)
    watch.stop()
    assert [(each.memory, each.shard, each.up) for each in watch.latest] == [
        ("spread", 0, False),
        ("spread", 1, False),
    ]
