"""A memory with a budget stays under it, and is what a memory of what it kept would be."""

from pathlib import Path

import numpy as np
import pytest

from tests.keep.texts import open_toy, some_text, state_of
from unbounded.errors import SettingError
from unbounded.keep import Budget
from unbounded.keep.kept import to_lines


@pytest.mark.parametrize("policy", ["age", "surprise"])
def test_a_memory_stays_under_its_budget_and_fits_its_journal(tmp_path: Path, policy: str) -> None:
    budget = Budget(1024, policy)
    with open_toy(tmp_path / "m", budget=budget) as memory:
        most = 0
        for _ in memory.follow(to_lines(some_text(400), "a", 1)):
            most = max(most, len(memory))
        assert 512 <= most <= 1024
        assert len(memory) <= 1024
        assert any(f"forgotten by {policy}" in event for event in memory.events)
        assert memory.check(deep=True) == []
        assert memory.stats()["forgotten"] == 0
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert memory.budget == budget
        assert state_of(memory) == known


def test_by_age_the_oldest_lines_go(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m", budget=Budget(1024)) as memory:
        memory.read("\n".join(f"line{i}" for i in range(700)), "a")
        left = [word for words in memory.store.replay() for word in words if word != "</s>"]
        assert left == [f"line{i}" for i in range(700 - len(left), 700)]
        assert 256 <= len(left) < 512


def test_by_surprise_what_the_model_knew_anyway_goes(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m", budget=Budget(1024, "surprise")) as memory:
        known = "known1 known2 known3 known4"
        random = np.random.default_rng(0)
        lines = [known if random.random() < 0.5 else f"odd{i} odder{i}" for i in range(320)]
        memory.read("\n".join(lines), "a")
        assert any("forgotten" in event for event in memory.events)
        left = [word for words in memory.store.replay() for word in words]
        assert left.count("known1") / lines.count(known) < 0.5
        odd = sum(word.startswith("odder") for word in left)
        assert odd / (len(lines) - lines.count(known)) > 0.8


def test_a_budget_stays_as_it_was_and_must_make_sense(tmp_path: Path) -> None:
    open_toy(tmp_path / "m", budget=Budget(2048)).close()
    with pytest.raises(SettingError, match="that stays"):
        open_toy(tmp_path / "m", budget=Budget(4096))
    with pytest.raises(SettingError, match=r"at least 1,024"):
        Budget(10)
    with pytest.raises(SettingError, match="use age or surprise"):
        Budget(2048, "whim")
