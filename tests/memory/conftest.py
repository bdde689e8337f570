"""What a memory on disk promises, one on shards does: most tests run over both."""

from pathlib import Path

import pytest

from tests.memory import texts
from unbounded.cluster import sharded

BOTH = {
    *("test_asking", "test_budget", "test_durable", "test_file_reading", "test_forgetting"),
    *("test_refusals", "test_undo"),
}
"""Files whose memories are opened on disk alone, and with keys on three shards of this process."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if Path(metafunc.definition.path).stem in BOTH:
        metafunc.fixturenames.append("place")
        metafunc.parametrize("place", ["disk", "shards"], indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the memories of a test lie; few words are enough for shards to have some."""
    monkeypatch.setattr(sharded, "BATCH", 16)
    if request.param == "shards":
        monkeypatch.setattr(texts, "PLACE", texts.ON_SHARDS)
