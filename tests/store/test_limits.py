"""Whatever is written can be read back, at every size limit; what could not be is refused."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Torture
from tests.store.test_records import append, new_store
from unbounded.errors import StoreError
from unbounded.store import Store, records
from unbounded.store.records import (
    json_payload,
    ranges_payloads,
    read_ranges,
    words_payload,
)

LIMIT = 200


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LONGEST", LIMIT)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", range(LIMIT - 2, LIMIT + 3))
def test_a_record_at_the_limit_is_read_back_or_never_written(tmp_path: Path, size: int) -> None:
    store = new_store(tmp_path / "m")
    append(store, "before")
    # A block of one word takes 16 bytes, a run 12.
    word, end = "x" * (size - 28), store.journal.end
    if size <= LIMIT:
        append(store, word)
    else:
        with pytest.raises(StoreError, match=f"at most {LIMIT} can be read back"):
            append(store, word)
        assert store.path.stat().st_size == store.journal.end == end
    append(store, "after")
    store.sync()
    store.close()
    again = Store(tmp_path / "m", write=True)
    assert again.words(0, 9) == (
        ["before", word, "after"] if size <= LIMIT else ["before", "after"]
    )
    again.close()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", range(LIMIT - 40, LIMIT + 3))
def test_a_name_at_the_limit_is_read_back_or_never_written(tmp_path: Path, size: int) -> None:
    store = new_store(tmp_path / "m")
    try:
        append(store, "one", "n" * size)
        there = ["one"]
    except StoreError:
        there = []
    append(store, "two", "short")
    store.close()
    again = Store(tmp_path / "m", write=False)
    assert again.words(0, 9) == [*there, "two"]
    assert (size > LIMIT - 5) <= (there == [])
    again.close()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("spaces", [LIMIT - 10, LIMIT - 9])
def test_white_space_that_fits_no_record_keeps_no_word_from_being_read(
    tmp_path: Path, spaces: int
) -> None:
    store = new_store(tmp_path / "m")
    written = "It", f"{' ' * spaces}rains"
    runs = np.array([[0, 1, 2]])
    store.append(["it", "rains"], ["a"], runs, 1.0, written)
    store.sync()
    store.close()
    again = Store(tmp_path / "m", write=False)
    assert again.words(0, 9) == ["it", "rains"]
    assert again.forms(0, 9) == (None if spaces > LIMIT - 10 else list(written))
    again.close()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 50])
def test_what_is_forgotten_fits_into_records_however_many_ranges(
    tmp_path: Path, count: int
) -> None:
    ranges = [(2 * i + 10**17, 2 * i + 10**17 + 1) for i in range(count)]
    payloads = ranges_payloads(ranges)
    assert [each for payload in payloads for each in read_ranges(memoryview(payload))] == ranges
    assert all(len(payload) <= LIMIT for payload in payloads)
    store = new_store(tmp_path / "m")
    for i in range(count):
        append(store, f"keep{i} drop{i}")
    store.forget([(2 * i + 1, 2 * i + 2) for i in range(count)])
    store.close()
    again = Store(tmp_path / "m", write=False)
    assert again.words(0, 999) == [f"keep{i}" for i in range(count)]
    again.close()


@pytest.mark.parametrize(
    ("runs", "given"),
    [
        ([[0, 2**31, 1]], ["word"]),
        ([[0, -(2**31) - 1, 1]], ["word"]),
        ([[0, 1, 1]], ["two\nlines"]),
        ([[0, 1, 2]], ["one"]),
        ([[0, 1, 0]], []),
    ],
)
def test_what_would_be_read_back_as_something_else_is_refused(
    runs: list[list[int]], given: list[str]
) -> None:
    with pytest.raises(StoreError, match="could not be read back"):
        words_payload(1.0, np.array(runs), given)
    with pytest.raises(StoreError, match="could not be read back"):
        json_payload({"name": "a", "time": float("nan")})


@pytest.mark.torture
def test_a_block_over_the_real_limit_is_refused_and_half_of_it_is_read_back(
    tmp_path: Path, torture: Torture
) -> None:
    if not torture.whole:
        pytest.skip("300 MB: under make torture")
    store = new_store(tmp_path / "m")
    block = [f"{i:03}" + "x" * 600_000 for i in range(500)]
    with pytest.raises(StoreError, match="can be read back"):
        store.append(block, ["big"], np.array([[0, 1, len(block)]]), 1.0)
    for half in (block[:250], block[250:]):
        store.append(half, ["big"], np.array([[0, 1, len(half)]]), 1.0)
    store.sync()
    store.close()
    again = Store(tmp_path / "m", write=True)
    assert again.events == []
    assert again.words(0, 999) == block
    again.close()
    torture.tell("records over 2²⁸ bytes", "folder", 2)
