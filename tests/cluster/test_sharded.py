"""A datastore on shards gives the answers of one in one place; the shards are in this process."""

from pathlib import Path

import numpy as np
import pytest

from tests.cluster.streams import WIDTH, here, shard_in, spread, stream
from unbounded.cluster import Engine, Shard, Sharded, Way, sharded_keys
from unbounded.cluster.engine import Call, Here, Pending, T, failing
from unbounded.datastore import IVFPQ, Auto, Coded, Datastore, Flat, Neighbors, Votes
from unbounded.datastore.datastore import Remote
from unbounded.errors import EngineError, MemoryFault, Unavailable
from unbounded.experts import Cache, stepwise
from unbounded.types import Hidden, Ids


def by_steps(memory: Datastore, keys: Hidden, words: Ids, k: int) -> list[Neighbors]:
    """The law: search one, add one."""
    found = []
    for t in range(len(keys)):
        found.append(memory.search(keys[t : t + 1], k))
        memory.add(keys[t : t + 1], words[t : t + 1])
    return found


def same(one: Neighbors, other: Neighbors, row: int) -> None:
    """Row `row` of one is the only row of another, pads aside."""
    count = other.squared.shape[1]
    np.testing.assert_array_equal(one.squared[row, :count], other.squared[0])
    np.testing.assert_array_equal(one.positions[row, :count], other.positions[0])
    np.testing.assert_array_equal(one.words[row, :count], other.words[0])
    assert (one.positions[row, count:] == -1).all()
    assert (one.words[row, count:] == -1).all()


def same_all(one: Neighbors, other: Neighbors) -> None:
    np.testing.assert_array_equal(one.squared, other.squared)
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.words, other.words)


@pytest.mark.parametrize("seed", range(12))
def test_exact_shards_find_what_one_exact_memory_finds_however_the_stream_is_cut(
    tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shards, k = int(rng.integers(1, 6)), int(rng.integers(1, 100))
    cuts = rng.integers(0, 150, int(rng.integers(0, 7))).tolist()
    keys, words = stream(150, seed)
    expected = by_steps(Flat(WIDTH), keys, words, k)
    memory = spread(tmp_path, shards)
    for rows in np.split(np.arange(150), sorted(cuts)):
        found = memory.read(keys[rows], words[rows], k)
        for row, t in enumerate(rows):
            same(found, expected[t], row)


def test_coded_shards_find_the_same_however_the_stream_is_cut(tmp_path: Path) -> None:
    keys, words = stream(700)
    single = spread(tmp_path / "single", 2, index="auto")
    single.add(keys[:480], words[:480])
    steps = by_steps(single, keys[480:], words[480:], 30)
    for seed in range(2):
        memory = spread(tmp_path / str(seed), 2, index="auto")
        cuts = np.sort(np.random.default_rng(seed).integers(0, 700, 12))
        for rows in np.split(np.arange(700), cuts):
            found = memory.read(keys[rows], words[rows], 30)
            for row, t in enumerate(rows):
                if t >= 480:
                    same(found, steps[t - 480], row)


def test_coded_shards_find_nearly_what_one_coded_memory_finds(tmp_path: Path) -> None:
    keys, words = stream(3000)
    memory = spread(tmp_path, 3, index="auto")
    alone, exact = Auto(WIDTH, exact=256), Flat(WIDTH)
    queries = stream(40, seed=5)[0]

    def recall(found: Neighbors) -> float:
        truth = exact.search(queries, 64).positions
        rows = zip(found.positions, truth, strict=True)
        return float(np.mean([len(np.intersect1d(*each)) / 64 for each in rows]))

    for each in (memory, alone, exact):
        each.add(keys, words)
    # Measured: 0.86 on three shards, 0.84 in one place.
    assert recall(memory.search(queries, 64)) > recall(alone.search(queries, 64)) - 0.03


@pytest.mark.parametrize("shards", [1, 3])
def test_neighbors_that_all_lie_on_one_shard_are_found(tmp_path: Path, shards: int) -> None:
    """A shard that has told all it was asked for, and has more, is asked again."""
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(320, WIDTH)).astype(np.float32)
    keys[::3] *= 0.01
    words = rng.integers(0, 9, 320)
    memory, exact = spread(tmp_path, shards), Flat(WIDTH)
    memory.add(keys, words)
    exact.add(keys, words)
    queries = np.zeros((5, WIDTH), np.float32)
    same_all(memory.search(queries, 90), exact.search(queries, 90))
    assert memory.asked_again == (5 if shards > 1 else 0)


def test_refused_pairs_leave_everything_as_it_was(tmp_path: Path) -> None:
    memory = spread(tmp_path, 2)
    keys, words = stream(40)
    memory.add(keys, words)
    bad = keys[:3].copy()
    bad[1, 0] = np.nan
    with pytest.raises(MemoryFault, match="row 1 of 3 keys is not finite"):
        memory.add(bad, words[:3])
    with pytest.raises(MemoryFault, match="row 1 of 3 queries is not finite"):
        memory.search(bad, 3)
    assert len(memory) == memory.added == 40
    assert [each.entries for each in memory.figures] == [16, 16]


@pytest.mark.parametrize("cuts", [(), (1, 2, 30), (16, 32, 50)])
def test_a_cache_on_shards_scores_as_one_in_one_place_and_word_by_word(
    tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    keys, words = stream(60)
    spread_out = Cache(spread(tmp_path / "blocks", 3), 12, k=7)
    single = Cache(spread(tmp_path / "single", 3), 12, k=7)
    expected = Cache(Flat(WIDTH), 12, k=7).score(keys, words)
    rows = np.split(np.arange(60), cuts)
    found = np.concatenate([spread_out.score(keys[some], words[some]) for some in rows])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(stepwise(single, keys, words), expected, rtol=1e-6, atol=1e-9)


def test_votes_of_all_pairs_change_nothing(tmp_path: Path) -> None:
    keys, words = stream(90)
    one, other = spread(tmp_path, 3), Flat(WIDTH)
    for each in (one, other):
        each.add(keys, words)
    asked = stream(9, 3)[0], words[:9], 20, Votes(kernels=3)
    np.testing.assert_allclose(one.vote(*asked), other.vote(*asked), rtol=1e-6)
    assert len(one) == 90


def test_what_was_expected_and_did_not_come_changes_nothing(tmp_path: Path) -> None:
    keys, words = stream(160)
    plain, told = spread(tmp_path / "plain", 2), spread(tmp_path / "told", 2)
    for start in range(0, 160, 20):
        rows = slice(start, start + 20)
        # As it comes; another; the same for other k; and as it comes, but others are added first.
        if start == 120:
            told.prefetch(keys[rows], 9)
            for memory in (plain, told):
                memory.add(keys[:3] + 7, words[:3])
        else:
            told.prefetch(keys[rows] + (start == 40), 9 + (start == 80))
        same_all(*(memory.read(keys[rows], words[rows], 9) for memory in (plain, told)))


@pytest.mark.parametrize("index", ["flat", "auto"])
def test_what_is_asked_ahead_over_several_batches_is_the_same(tmp_path: Path, index: str) -> None:
    """Shards have keys then that are not read yet; who is asked again is not to see them."""
    keys, words = stream(1500)
    if index == "flat":
        # The nearest lie on one shard, so that it is asked again.
        keys[::3] *= 0.01
    plain, told = (spread(tmp_path / name, 3, index=index) for name in ("plain", "told"))
    for start in range(0, 1500, 100):
        rows = slice(start, start + 100)
        told.prefetch(keys[rows][:90], 60)
        same_all(*(memory.read(keys[rows], words[rows], 60) for memory in (plain, told)))
    assert plain.asked_again == told.asked_again
    assert (told.asked_again > 100) == (index == "flat")


def test_what_was_asked_ahead_and_failed_is_taken_back(tmp_path: Path) -> None:
    keys, words = stream(400)
    engine, local = Dying(tmp_path, 2, Way(patience=0.05)), Flat(WIDTH)
    memory = Sharded(engine, WIDTH)
    for each in (memory, local):
        each.add(keys[:100], words[:100])
    memory.state()
    # Two batches ahead: of these keys, which never come.
    memory.prefetch(keys[:90] + 5, 20)
    same_all(memory.search(keys[:9], 20), local.search(keys[:9], 20))
    memory.prefetch(keys[:90] + 5, 20)
    for each in (memory, local):
        each.add(keys[100:300], words[100:300])
    same_all(memory.search(keys[:9], 20), local.search(keys[:9], 20))
    memory.prefetch(keys[:90] + 5, 20)
    again = spread(tmp_path, 2)
    again.load([memory.state()])
    same_all(again.search(keys[:9], 20), local.search(keys[:9], 20))


def test_no_answer_depends_on_a_later_word(tmp_path: Path) -> None:
    keys, words = stream(90)
    other = keys.copy()
    other[61:] += 3
    one, two = (
        spread(tmp_path / name, 2).read(each, words, 9)
        for name, each in (("one", keys), ("two", other))
    )
    np.testing.assert_array_equal(one.squared[:61], two.squared[:61])
    np.testing.assert_array_equal(one.words[:61], two.words[:61])


def test_every_datastore_is_tested_here_or_under_contract() -> None:
    assert set(Datastore.__subclasses__()) == {Coded, Flat, Remote}
    assert set(Coded.__subclasses__()) == {Auto, IVFPQ}
    assert set(Remote.__subclasses__()) == {Sharded}


# States, and shards that die.


@pytest.mark.parametrize("index", ["flat", "auto"])
def test_what_was_saved_is_loaded_and_goes_on_the_same(tmp_path: Path, index: str) -> None:
    keys, words = stream(1400)
    memory = spread(tmp_path, 3, index=index)
    parts = list[dict[str, np.ndarray]]()
    for start in range(0, 1200, 200):
        memory.add(keys[start : start + 200], words[start : start + 200])
        part = memory.state(start if parts else None)
        ids = words[start : start + 200].astype(np.int32)
        parts.append({**part, "ids": ids} if parts else part)
    again = spread(tmp_path, 3, index=index)
    again.load(parts)
    assert len(again) == 1200
    for each in (memory, again):
        each.add(keys[1200:], words[1200:])
    same_all(again.search(keys[:50], 40), memory.search(keys[:50], 40))
    assert again.words.tolist() == words.tolist()


def test_a_state_that_nobody_refers_to_is_removed(tmp_path: Path) -> None:
    keys, words = stream(400)
    engine = here(tmp_path, 2)
    memory = Sharded(engine, WIDTH)
    states = []
    for start in range(0, 400, 100):
        memory.add(keys[start : start + 100], words[start : start + 100])
        states.append(memory.state())
    assert len(list((tmp_path / "0000").iterdir())) == 1 + 4
    other = Sharded(engine, WIDTH)
    other.add(keys[:64], words[:64])
    unused = other.state()
    for shard in engine.shards:
        shard.drop([other._keys.id])
        shard.keep([])
    # Those that the last one leads on from are needed.
    assert len(list((tmp_path / "0000").iterdir())) == 1 + 4
    again = spread(tmp_path, 2)
    again.load([states[-1]])
    same_all(again.search(keys[:9], 30), memory.search(keys[:9], 30))
    with pytest.raises(EngineError, match=r"is lost or damaged .*read again from the journal"):
        spread(tmp_path, 2).load([unused])


class Dying(Engine):
    """Shards in this process, each of which is started again at some call, or is unavailable."""

    def __init__(self, folder: Path, count: int, way: Way = Way()) -> None:
        super().__init__(count, way)
        self.folder, self.calls = folder, 0
        self.here = here(folder, count)
        self.dies: dict[int, int] = {}
        """At which call which shard is started again."""
        self.away: set[int] = set()

    def share(self, array: object) -> object:
        return array

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        self.calls += 1
        if (died := self.dies.get(self.calls)) is not None:
            self.here.shards[died] = shard_in(self.folder, died, self.count)
        if shard in self.away:
            return failing(Unavailable("it is away"))
        return self.here.begin(shard, call)

    def answers(self, shard: int) -> bool:
        return shard not in self.away

    def close(self) -> None:
        pass


@pytest.mark.parametrize("seed", range(6))
def test_whatever_shard_is_started_again_the_answers_are_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(sharded_keys, "SAVED", 3)
    keys, words = stream(500, seed)
    engine, local = Dying(tmp_path, 3), Flat(WIDTH)
    memory = Sharded(engine, WIDTH)
    random = np.random.default_rng(seed)
    for start in range(0, 500, 50):
        engine.dies[engine.calls + int(random.integers(1, 9))] = int(random.integers(3))
        rows = slice(start, start + 50)
        memory.prefetch(keys[rows], 20)
        same_all(memory.read(keys[rows], words[rows], 20), local.read(keys[rows], words[rows], 20))
    assert [each.entries for each in memory.figures] == [160, 160, 160]


def test_a_shard_that_stays_away_stops_reading_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    keys, words = stream(90)
    engine = Dying(tmp_path, 2, Way(patience=0.05))
    memory = Sharded(engine, WIDTH)
    memory.read(keys[:40], words[:40], 9)
    engine.away = {1}
    with pytest.raises(Unavailable, match=r"shard 1 of 2 has been unavailable .*the journal has"):
        memory.search(keys[:3], 9)
    engine.away = set()
    assert memory.search(keys[:3], 9).squared.shape == (3, 9)


def test_without_a_shard_it_goes_on_and_tells_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(sharded_keys, "RETRY", 0.0)
    keys, words = stream(400)
    said, local = list[str](), Flat(WIDTH)
    engine = Dying(tmp_path, 2, Way(0.05, True, 10**4, said.append))
    memory = Sharded(engine, WIDTH)
    for each in (memory, local):
        each.read(keys[:100], words[:100], 9)
    engine.away = {1}
    found = memory.read(keys[100:200], words[100:200], 9)
    local.read(keys[100:200], words[100:200], 9)
    # From what is there: the recent past, and the other shard.
    assert found.squared.shape == (100, 9)
    assert [each.up for each in memory.figures] == [True, False]
    with pytest.raises(EngineError, match=r"shards \[1\] are unavailable, and there is no checkp"):
        memory.state()
    engine.away = set()
    memory.add(keys[200:264], words[200:264])
    local.add(keys[200:264], words[200:264])
    assert [each.up for each in memory.figures] == [True, True]
    same_all(memory.search(keys[:50], 40), local.search(keys[:50], 40))
    assert [line.split(" (")[0] for line in said] == [
        "shard 1 of 2 is unavailable",
        "shard 1 of 2 is back, and was told what it had missed",
    ]
    # What may wait has an end.
    memory.state()
    engine.away = {0}
    with pytest.raises(EngineError, match="10,000 bytes wait for shards"):
        memory.read(np.tile(keys, (2, 1)), np.tile(words, 2), 9)


def test_shards_of_this_process_answer_in_the_order_of_calls(tmp_path: Path) -> None:
    engine = Here([shard_in(tmp_path, 0, 1)])
    keys, _ = stream(8)
    first = engine.begin(0, Call(Shard.search, "a", 0, keys, 3, 0))
    engine.begin(0, Call(Shard.add, "a", 0, keys))
    assert first().squared.shape == (8, 0)
