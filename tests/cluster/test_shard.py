"""One shard: durable when it answers, there once only, whatever a crash leaves of its files."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cluster.streams import WIDTH, WORDS, about, stream
from unbounded.cluster import Shard, shard
from unbounded.cluster.messages import Piece
from unbounded.errors import EngineError, StoreError
from unbounded.store import records


def piece(first: int, count: int, document: str = "letter", step: int = 2) -> Piece:
    keys, words = stream(2000)
    rows = slice(first, first + count * step, step)
    named = [WORDS[word] for word in words[rows]]
    return Piece(document, first, step, 1.5, np.arange(2000)[rows], named, keys[rows])


def opened(folder: Path, **described: object) -> Shard:
    return Shard(str(folder), about(**described), patience=0.0)  # type: ignore[arg-type]


def answers(one: Shard) -> list[bytes]:
    found = one.search(stream(5, seed=9)[0], 30, 0, 0)
    return [array.tobytes() for array in found[:3]]


def test_what_was_acknowledged_is_there_after_a_crash(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    for first in (0, 40, 80):
        one.append([piece(first, 20)])
    before = answers(one)
    # Closing writes nothing: the files are as a crash leaves them.
    one.close()
    again = opened(tmp_path / "one")
    assert answers(again) == before
    assert again.held("letter") == 60


def test_entries_are_there_once_however_often_they_come(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 20)])
    size = os.path.getsize(one._path)
    assert one.append([piece(0, 20)]) == 20
    assert os.path.getsize(one._path) == size
    # Half of it is new.
    assert one.append([piece(20, 20), piece(20, 20)]) == 30
    assert one.words("letter", 0, 100) == {
        2 * i: WORDS[word] for i, word in enumerate(stream(2000)[1][:60:2])
    }


def test_a_gap_is_refused(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 20)])
    with pytest.raises(EngineError, match=r"holds 20 entries of 'letter'.* follows 25"):
        one.append([piece(50, 5)])
    assert one.append([]) == 20


@pytest.mark.parametrize("cut", [1, 30, 600])
def test_a_torn_end_is_cut_off_and_said(tmp_path: Path, cut: int) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 20)])
    before, mark = answers(one), (tmp_path / "one/acknowledged").read_bytes()
    one.append([piece(40, 20)])
    os.truncate(one._path, os.path.getsize(one._path) - cut)
    # Never acknowledged: the crash came before the answer.
    (tmp_path / "one/acknowledged").write_bytes(mark)
    one.close()
    again = opened(tmp_path / "one")
    assert answers(again) == before
    assert "cut off" in again.events[0]
    assert again.append([piece(40, 20)]) == 40


def test_damage_before_the_mark_is_an_error(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 20)])
    os.truncate(one._path, os.path.getsize(one._path) - 1)
    one.close()
    with pytest.raises(StoreError, match="acknowledged cannot be read"):
        opened(tmp_path / "one")


@pytest.mark.parametrize("damaged", [False, True])
def test_a_snapshot_saves_making_the_index_again(
    tmp_path: Path, damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "SNAPSHOT_ENTRIES", 300)
    one = opened(tmp_path / "one", index="auto", exact=256)
    for first in range(0, 1200, 100):
        one.append([piece(first, 50)])
    before = answers(one)
    one.close()
    older, newest = sorted((tmp_path / "one").glob("snapshot-*"))
    assert older.name < newest.name
    if damaged:
        with (newest / "arrays.npy").open("r+b") as file:
            file.seek(5000)
            file.write(b"rot")
    again = opened(tmp_path / "one", index="auto", exact=256)
    assert answers(again) == before
    assert (len(again.events) == 1) == damaged
    assert again.append([piece(1200, 10)]) == 610


@pytest.mark.parametrize("how", ["cut", "flipped", "lost"])
def test_a_snapshot_is_no_reason_to_trust_a_damaged_journal(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "SNAPSHOT_ENTRIES", 30)
    one = opened(tmp_path / "one")
    for first in (0, 40, 80):
        one.append([piece(first, 20)])
    one.snapshot()
    path = one._path
    one.close()
    whole = path.read_bytes()
    for at in range(30, len(whole), 97):
        if how == "lost":
            (tmp_path / "one" / shard.ABOUT).unlink(missing_ok=True)
        else:
            end = whole[at + 1 :] if how == "flipped" else b""
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + end)
        with pytest.raises(StoreError):
            opened(tmp_path / "one")


def test_pieces_at_the_limit_of_a_record_are_split_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 60)])
    words = one.words("letter", 0, 999)
    for limit in (90, 91, 120, 500, 1500):
        monkeypatch.setattr(records, "LONGEST", limit)
        other = opened(tmp_path / f"small{limit}")
        assert other.append([piece(0, 60)]) == 60
        with pytest.raises(StoreError, match="can be read back"):
            other.append([Piece("x" * limit, 0, 1, 1.0, np.zeros(1, int), ["w"], piece(0, 1).keys)])
        other.close()
        again = opened(tmp_path / f"small{limit}")
        assert answers(again) == answers(one)
        assert again.words("letter", 0, 999) == words
        assert again.events == []
        again.close()


def test_forgetting_is_as_if_never_read_and_in_no_file(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "one"), opened(tmp_path / "other")
    secret = piece(0, 15, "diary")
    secret = Piece("diary", 0, 2, 1.5, secret.lines, ["hush"] * 15, secret.keys)
    for name, each in (("letter", piece(0, 20)), ("diary", secret), ("letter", piece(40, 20))):
        one.append([each])
        if name == "letter":
            other.append([each])
    assert one.forget(["diary"]) == 15
    assert answers(one) == answers(other)
    assert b"hush" not in one._path.read_bytes()
    one.close()
    again = opened(tmp_path / "one")
    assert answers(again) == answers(other)
    # It may come again.
    assert again.append([secret]) == 55
    assert again.forget(["nobody"]) == 0


def test_a_forgetting_that_a_crash_cut_short_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = opened(tmp_path / "one")
    one.append([piece(0, 20), piece(0, 15, "diary")])

    def crash() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(one, "_build", crash)
    with pytest.raises(KeyboardInterrupt):
        one.forget(["diary"])
    one.close()
    again = opened(tmp_path / "one")
    assert (again.held("diary"), again.held("letter")) == (0, 20)
    assert len(again.memory) == 20
    assert b"diary" not in again._path.read_bytes()


def test_one_folder_has_one_shard(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    with pytest.raises(StoreError, match="is being written by process"):
        opened(tmp_path / "one")
    one.remove()
    assert not (tmp_path / "one").exists()


def test_entries_have_the_width_of_the_shard(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    assert one.stats()["width"] == WIDTH
    assert one.stats()["documents"] == {}
