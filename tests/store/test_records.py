"""What is written down comes back, and nothing that is not whole does."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.errors import StoreError
from unbounded.store import Store, disk
from unbounded.store.disk import RealDisk
from unbounded.store.records import (
    WATERMARK,
    WORDS,
    ranges_payloads,
    read_ranges,
    read_words,
    record_at,
    records,
    to_bytes,
    words_payload,
)
from unbounded.store.store import create

words = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), min_size=1
)


def new_store(folder: Path) -> Store:
    create(folder, {"model": {}}, RealDisk())
    return Store(folder, write=True)


def append(store: Store, text: str, document: str = "a", line: int = 1, time: float = 5.0) -> None:
    words = text.split()
    store.append(words, [document], np.array([[0, line, len(words)]]), time)


def two_blocks(folder: Path) -> tuple[Store, int]:
    """What was acknowledged, and closed; where the first block ends."""
    store = new_store(folder)
    append(store, "one two three")
    first = store.journal.end
    append(store, "four five")
    store.sync()
    store.close()
    return store, first


@given(words=words, time=st.floats(0, 1e10), lines=st.integers(1, 2**31 - 1))
@settings(max_examples=50, deadline=None)
def test_words_come_back_as_they_were(words: list[str], time: float, lines: int) -> None:
    runs = np.array([[0, lines, len(words)]])
    data = to_bytes(WORDS, 7, words_payload(time, runs, words))
    (record,) = records(memoryview(data), 0, 7)
    found = read_words(record.payload)
    assert (found.words, found.time, found.runs.tolist()) == (words, time, runs.tolist())
    assert (record.kind, record.number, record.start, record.end) == (WORDS, 7, 0, len(data))


def test_any_flipped_bit_and_any_missing_byte_is_noticed() -> None:
    data = to_bytes(WORDS, 3, words_payload(1.0, np.array([[0, 1, 2]]), ["so", "be"]))
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert record_at(memoryview(flipped), 0, 3) is None
    for length in range(len(data)):
        assert record_at(memoryview(data[:length]), 0, 3) is None
    assert record_at(memoryview(data), 0, 4) is None


def test_ranges_come_back_and_none_is_no_record() -> None:
    (payload,) = ranges_payloads([(0, 3), (9, 10)])
    assert read_ranges(memoryview(payload)) == [(0, 3), (9, 10)]
    assert ranges_payloads([]) == []
    with pytest.raises(ValueError, match="no ranges"):
        read_ranges(memoryview(b'{"ranges":[]}'))


def test_a_tail_torn_at_any_byte_is_cut_and_said_so(tmp_path: Path) -> None:
    store = new_store(tmp_path / "m")
    append(store, "one two three")
    store.sync()
    kept = store.journal.end
    append(store, "four five", "another", 2)
    whole = store.path.read_bytes()
    store.close()
    mark = (tmp_path / "m" / WATERMARK).read_bytes()
    for length in range(kept, len(whole)):
        store.path.write_bytes(whole[:length])
        (tmp_path / "m" / WATERMARK).write_bytes(mark)
        again = Store(tmp_path / "m", write=True)
        torn = length - again.journal.end
        assert again.words(0, 99) == ["one", "two", "three"]
        assert again.path.stat().st_size == again.journal.end
        assert len(again.events) == (torn > 0)
        if torn:
            assert f"{torn:,} bytes from byte {again.journal.end:,}" in again.events[0]
        append(again, "six")
        assert again.words(0, 99) == ["one", "two", "three", "six"]
        again.close()


def test_a_reader_leaves_a_torn_tail_alone(tmp_path: Path) -> None:
    store = new_store(tmp_path / "m")
    append(store, "one two")
    store.sync()
    with store.path.open("ab") as file:
        file.write(b"half a rec")
    size = store.path.stat().st_size
    reader = Store(tmp_path / "m", write=False)
    assert reader.words(0, 9) == ["one", "two"]
    assert store.path.stat().st_size == size
    with pytest.raises(StoreError, match="opened for reading"):
        append(reader, "three")
    reader.close()
    store.close()


def test_every_flipped_bit_of_what_was_acknowledged_is_an_error_that_names_the_place(
    tmp_path: Path,
) -> None:
    store, first = two_blocks(tmp_path / "m")
    whole = store.path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        store.path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"journal-00000001\.log is damaged at byte") as error:
            Store(tmp_path / "m", write=at % 2 == 0)
        if at >= first:
            assert f"byte {first:,}:" in str(error.value)
        assert store.path.read_bytes() == damaged


def test_acknowledged_words_that_are_missing_are_an_error(tmp_path: Path) -> None:
    store, first = two_blocks(tmp_path / "m")
    store.path.write_bytes(store.path.read_bytes()[:first])
    with pytest.raises(StoreError, match="a record that was acknowledged"):
        Store(tmp_path / "m", write=True)
    # As the message says.
    (tmp_path / "m" / WATERMARK).unlink()
    again = Store(tmp_path / "m", write=True)
    assert again.words(0, 9) == ["one", "two", "three"]
    again.close()


def test_a_damaged_mark_is_said_and_not_used(tmp_path: Path) -> None:
    two_blocks(tmp_path / "m")
    mark = bytearray((tmp_path / "m" / WATERMARK).read_bytes())
    mark[3] ^= 4
    (tmp_path / "m" / WATERMARK).write_bytes(mark)
    again = Store(tmp_path / "m", write=False)
    assert ["acknowledged" in event for event in again.events] == [True]
    assert again.words(0, 9) == ["one", "two", "three", "four", "five"]
    again.close()


def test_where_a_sync_ends_too_early_a_full_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr("fcntl.fcntl", lambda file, what: asked.append(f"fcntl {what}"))
    monkeypatch.setattr("os.fsync", lambda file: asked.append("fsync"))
    RealDisk().sync(0)

    def refused(file: int, what: int) -> None:
        raise OSError

    monkeypatch.setattr("fcntl.fcntl", refused)
    RealDisk().sync(0)
    assert asked == ["fcntl 51", "fsync"]
