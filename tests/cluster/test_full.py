"""`full` on shards is `full` on one machine: all eight experts, the same text, the same nats."""

from pathlib import Path

import numpy as np
import pytest

import unbounded
from tests.memory.test_one_model import MODEL, MORE
from tests.memory.texts import some_text
from unbounded import _native
from unbounded.datastore import Auto
from unbounded.presets import INDEXES, MemoryConfig

TEXT = some_text(300)

TOLERANCE = {"flat": 1e-9, "auto": 0.02}
"""Nats of a word on the average, apart from one in one place."""


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize("index", ["flat", "auto"])
def test_full_has_the_same_nats_on_shards(
    tmp_path: Path, index: str, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INDEXES, "auto", lambda width: Auto(width, 256))
    config, engine = MemoryConfig(index=index, k=64), f"here://local?shards={shards}"
    with (
        unbounded.open(tmp_path / "local", MODEL, config=config) as local,
        unbounded.open(tmp_path / "shards", MODEL, config=config, engine=engine) as memory,
    ):
        assert list(memory.online.experts) == list(local.online.experts)
        assert {"ngrams", "unigram", "spelling", "dynamic_head"} <= set(memory.online.experts)
        one, other = memory.read(TEXT), local.read(TEXT)
        assert list(one.words) == list(other.words)
        assert np.abs(one.logprobs - other.logprobs).mean() < TOLERANCE[index]
        if index == "flat":
            one, other = memory.score(MORE), local.score(MORE)
            np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=1e-9)
            found, same = memory.predict("known3"), local.predict("known3")
            for guess, expected in zip(found.words, same.words, strict=True):
                assert guess.word == expected.word
                assert [each.text for each in guess.sources] == [
                    each.text for each in expected.sources
                ]


def test_shards_in_this_process_leave_its_threads_alone(tmp_path: Path) -> None:
    before = _native.threads()
    _native.set_threads(2)
    try:
        with unbounded.open(tmp_path / "memory", MODEL, engine="here://local?shards=2"):
            assert _native.threads() == 2
    finally:
        _native.set_threads(before)


def test_two_writers_in_turn_know_what_the_other_read(tmp_path: Path) -> None:
    """One at a time, as on disk; many at once go through the service."""
    engine, parts = "here://local?shards=2", [some_text(60, seed) for seed in range(4)]
    config = MemoryConfig(index="flat")
    with unbounded.open(tmp_path / "straight", MODEL, config=config) as straight:
        expected = [straight.read(text, str(number)) for number, text in enumerate(parts)]
    for number, text in enumerate(parts):
        with unbounded.open(tmp_path / "m", MODEL, engine=engine, config=config) as memory:
            with pytest.raises(unbounded.StoreError, match="one writer is all a memory can have"):
                unbounded.open(tmp_path / "m", MODEL, engine=engine)
            found = memory.read(text, str(number))
            np.testing.assert_allclose(found.logprobs, expected[number].logprobs, atol=1e-9)
            reader = unbounded.open(tmp_path / "m", MODEL, engine=engine, mode="read")
            assert len(reader) == len(memory)
            reader.close()
    with unbounded.open(tmp_path / "m", MODEL, engine=engine) as memory:
        assert memory.check(deep=True) == []
        assert len(memory.documents()) == 4
