"""A memory with a budget stays under it, and is what a memory of what it kept would be."""

from pathlib import Path

import numpy as np
import pytest

from tests.memory.texts import open_toy, some_text, state_of, store_of
from unbounded.corpus import lines_of
from unbounded.errors import SettingError, StoreError
from unbounded.memory import Budget, checkpointing, forgetting
from unbounded.memory import learned as mind


@pytest.mark.parametrize("policy", ["age", "surprise"])
def test_a_memory_stays_under_its_budget_and_fits_its_journal(tmp_path: Path, policy: str) -> None:
    limit = Budget(1024, policy)
    with open_toy(tmp_path / "m", budget=limit) as memory:
        most = 0
        for _ in memory.follow(lines_of(some_text(400), "a", 1)):
            most = max(most, len(memory))
        assert 512 <= most <= 1024
        assert len(memory) <= 1024
        assert any(f"by {policy}: " in event for event in memory.events)
        assert any("of perplexity" in event for event in memory.events)
        assert memory.check(deep=True) == []
        assert memory.stats()["forgotten"] == 0
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert memory.backend.budget == limit
        assert state_of(memory) == known


def test_by_age_the_oldest_lines_go(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m", budget=Budget(1024)) as memory:
        memory.read("\n".join(f"line{i}" for i in range(700)), "a")
        left = [word for words in store_of(memory).replay() for word in words if word != "</s>"]
        assert left == [f"line{i}" for i in range(700 - len(left), 700)]
        assert 256 <= len(left) < 512


def test_by_surprise_what_the_model_knew_anyway_goes(tmp_path: Path) -> None:
    with open_toy(tmp_path / "m", budget=Budget(1024, "surprise")) as memory:
        known = "known1 known2 known3 known4"
        random = np.random.default_rng(0)
        lines = [known if random.random() < 0.5 else f"odd{i} odder{i}" for i in range(320)]
        memory.read("\n".join(lines), "a")
        assert any("forgotten" in event for event in memory.events)
        left = [word for words in store_of(memory).replay() for word in words]
        assert left.count("known1") / lines.count(known) < 0.5
        odd = sum(word.startswith("odder") for word in left)
        assert odd / (len(lines) - lines.count(known)) > 0.8


def test_a_budget_stays_as_it_was_and_must_make_sense(tmp_path: Path) -> None:
    open_toy(tmp_path / "m", budget=Budget(2048)).close()
    with pytest.raises(SettingError, match="that stays"):
        open_toy(tmp_path / "m", budget=Budget(4096))
    for given, said in (
        ((10,), "at least 1,024"),
        ((2048, "whim"), "use age or surprise"),
        ((None, "age", 1_000), "at least 16 MB"),
        ((), "give entries or bytes"),
    ):
        with pytest.raises(SettingError, match=said):
            Budget(*given)
    for wrong in ("", "much", "-5", "5T", "1e6", "NaN", "0"):
        with pytest.raises(SettingError, match=r"write 1M for entries|at least 1,024"):
            Budget.parse(wrong)


@pytest.mark.parametrize("policy", ["age", "surprise"])
def test_a_memory_stays_under_its_budget_in_bytes(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "SMALLEST", 1)
    monkeypatch.setattr(mind, "SMALL", 20_000)
    monkeypatch.setattr(checkpointing, "DELTA_WORDS", 256)
    monkeypatch.setattr(checkpointing, "SNAPSHOT_WORDS", 600)
    limit, sizes = Budget(bytes=1_200_000, policy=policy), []
    with open_toy(tmp_path / "m", budget=limit) as memory:
        for _ in memory.follow(lines_of(some_text(1200), "a", 1)):
            sizes.append(store_of(memory).bytes)
        assert 600_000 < max(sizes) <= 1_200_000
        assert sum("1,200,000 bytes" in event for event in memory.events) >= 2
        assert memory.check(deep=True) == []
        known = state_of(memory)
    with open_toy(tmp_path / "m") as memory:
        assert (memory.backend.budget, state_of(memory)) == (limit, known)
    with (
        open_toy(tmp_path / "n", budget=Budget(bytes=100_000)) as memory,
        pytest.raises(StoreError, match=r"has a budget of 100,000 bytes.*larger"),
    ):
        memory.read(some_text(100), "a")


def test_what_forgetting_cost_is_what_a_memory_that_forgot_nothing_would_have_had(
    tmp_path: Path,
) -> None:
    text = lines_of(some_text(400, 1), "a", 1)
    with open_toy(tmp_path / "all") as every, open_toy(tmp_path / "m", budget=Budget(1024)) as some:
        nats = [
            [-np.log(reading.prob).sum() for reading in memory.follow(text)]
            for memory in (every, some)
        ]
        (first, *_) = [event for event in some.events if "of perplexity" in event]
    # The third block made room, and the fourth again.
    words = int(first.split()[-2].replace(",", ""))
    assert words == 512
    before, after = (np.exp(found[2] / words) for found in nats)
    assert f"({before:,.1f} with all that was there, {after:,.1f} without)" in first
    assert after != before
