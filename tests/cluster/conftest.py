"""Few pairs are enough for shards to have some."""

import pytest

from unbounded.cluster import shard, sharded
from unbounded.datastore import Auto, Flat


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "BATCH", 32)
    monkeypatch.setattr(shard, "KINDS", {"flat": Flat, "auto": lambda width: Auto(width, 256)})
