"""Moving from some shards to others: all of it, once, and in its place."""

from pathlib import Path

import numpy as np
import pytest

from tests.cluster.streams import WIDTH, here, stream, vocabulary
from unbounded.cluster import Sharded, resharding
from unbounded.cluster.resharding import lengths, move
from unbounded.errors import EngineError


@pytest.mark.parametrize(("few", "many"), [(1, 3), (4, 2), (3, 3)])
def test_after_a_move_the_answers_are_the_same(
    tmp_path: Path, few: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resharding, "AT_ONCE", 12)
    source, target = here(tmp_path / "source", few), here(tmp_path / "target", many)
    old = Sharded(source, vocabulary(), WIDTH, batch=16, document="letter")
    keys, words = stream(100)
    old.add(keys, words)
    old.begin("diary")
    old.add(keys[:7] + 9, words[:7])
    old.flush()
    assert move(source, target) == 107
    new = Sharded(target, vocabulary(), WIDTH)
    one, other = (each.search(keys[:20], 107) for each in (old, new))
    np.testing.assert_allclose(one.squared, other.squared, atol=1e-5)
    for each in (old, new):
        assert each.words_of("letter", 0, 100) == vocabulary().decode(words)
    # Again, and nothing is there twice.
    assert move(source, target) == 107
    assert lengths(target) == {"letter": 100, "diary": 7}


def test_a_move_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resharding, "AT_ONCE", 10)
    source, target = here(tmp_path / "source", 2), here(tmp_path / "target", 3)
    old = Sharded(source, vocabulary(), WIDTH, document="letter")
    keys, words = stream(95)
    old.add(keys, words)
    old.flush()

    def stop(done: int) -> None:
        if done >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(source, target, stop)
    told: list[int] = []
    assert move(source, target, told.append) == 95
    # The first forty were not sent again.
    assert told[0] == 50
    new = Sharded(target, vocabulary(), WIDTH)
    assert new.words_of("letter", 0, 95) == vocabulary().decode(words)


def test_what_differs_is_not_called_moved(tmp_path: Path) -> None:
    source, target = here(tmp_path / "source", 2), here(tmp_path / "target", 2)
    for engine, seed in ((source, 0), (target, 1)):
        each = Sharded(engine, vocabulary(), WIDTH, document="letter")
        each.add(*stream(50, seed))
        each.flush()
    with pytest.raises(EngineError, match="'letter' differs from position"):
        move(source, target)
