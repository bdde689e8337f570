"""A memory of every released format still opens, and knows what it knew."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.memory.texts import CONFIG, open_toy, some_text, store_of
from unbounded.store.disk import RealDisk
from unbounded.store.layout import FORMAT, read_about, write_about

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_golden_memory_opens_and_goes_on(tmp_path: Path, number: int, mode: str) -> None:
    kept = GOLDEN / f"format-{number}"
    expected = json.loads((kept / "expected.json").read_text(encoding="utf-8"))
    shutil.copytree(kept / "memory", tmp_path / "m")
    with open_toy(tmp_path / "m", mode=mode) as memory:
        renewed = mode == "write" and number < FORMAT
        assert ["was brought from format" in event for event in memory.events] == [True] * renewed
        assert store_of(memory).about["format"] == FORMAT
        assert len(memory) == expected["entries"]
        assert [one.name for one in memory.documents()] == expected["documents"]
        assert [word for words in store_of(memory).replay() for word in words] == expected["text"]
        assert memory.backend.saving.since == (0 if renewed else 4)
        heard = memory.score("known1 golden known7 never")
        np.testing.assert_allclose(heard.prob, expected["probs"], rtol=1e-6)
        assert [g.word for g in memory.predict("known2", 5).words] == expected["words"]
        assert memory.check() == []
        if mode == "write":
            memory.read("known1", "more")
            memory.compact()
            assert b"zebra" not in store_of(memory).path.read_bytes()
    if mode == "write":
        # What was brought to the present format is as safe as what was made in it.
        with open_toy(tmp_path / "m") as memory:
            assert (store_of(memory).old, memory.events) == (False, [])
            assert memory.check() == []


def test_what_learned_by_a_longer_search_goes_on_with_it(tmp_path: Path) -> None:
    config = replace(CONFIG, index="auto", k=512, candidates=8)
    with open_toy(tmp_path / "m", preset="unbounded", config=config) as memory:
        memory.read(some_text(2_700))
        assert len(memory) > 16_384 + 512
    about = read_about(tmp_path / "m")
    # Before 0.3 all looked at eight, and none said so.
    del about["settings"]["candidates"]
    write_about(RealDisk(), tmp_path / "m", about)
    with open_toy(tmp_path / "m", config=replace(config, candidates=4)) as memory:
        assert memory.check(deep=True) == []
    about["settings"]["candidates"] = 4
    write_about(RealDisk(), tmp_path / "m", about)
    with open_toy(tmp_path / "m", config=config) as memory:
        assert memory.check(deep=True) != []


def test_golden_memories_are_small() -> None:
    assert (
        sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 200_000 * FORMAT
    )
