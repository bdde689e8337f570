import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search import exact
from benchmarks.states import Scratch
from benchmarks.stock import Stock, StockProcess, contestants, lists_for
from unbounded.errors import SettingError
from unbounded.types import Hidden


def keys_of(count: int, width: int = 16) -> Hidden:
    return np.random.default_rng(1).normal(size=(count, width)).astype(np.float32)


def test_the_paper_has_4096_lists_where_there_are_enough_states() -> None:
    assert (lists_for(10_000_000), lists_for(39_000), lists_for(10)) == (4096, 1000, 1)


def test_scratch_files_give_back_what_was_written(tmp_path: Path) -> None:
    scratch, keys = Scratch(tmp_path, 16), keys_of(100)
    for start in (0, 30):
        stop = 30 if start == 0 else 100
        scratch.append(keys[start:stop], np.arange(start, stop))
    np.testing.assert_allclose(scratch.keys(20, 40), keys[20:40], rtol=1e-3)
    np.testing.assert_array_equal(scratch.words(50), np.arange(50))
    np.testing.assert_array_equal(
        np.concatenate(list(scratch.chunks(0, 100))), scratch.keys(0, 100)
    )


def test_stock_finds_most_of_what_is_near() -> None:
    keys = keys_of(2_000)
    stock = Stock(keys)
    stock.add(keys)
    found = stock.search(keys[:50], 1)[1]
    assert np.mean(found[:, 0] == np.arange(50)) > 0.9  # measured 1.0
    assert stock.bytes > 2_000 * (16 + 8)


def test_a_process_of_its_own_gives_words_and_says_what_is_missing(tmp_path: Path) -> None:
    scratch, keys = Scratch(tmp_path, 16), keys_of(2_000)
    scratch.append(keys, np.arange(2_000) + 7)
    with closing(StockProcess(1, tmp_path, 16)) as stock:
        assert stock.fill(1_000)[1] == 1_000
        stock.fill(2_000)
        seconds, squared, words = stock.search(keys[:50], 1_024)
    assert seconds > 0
    assert np.mean(words[:, 0] == np.arange(50) + 7) > 0.9
    # Eight of 51 lists do not hold 1,024 keys.
    missing = words < 0
    assert missing[:, -1].any()
    assert np.isinf(squared[missing]).all()
    assert np.isfinite(squared[~missing]).all()


def test_exact_search_does_not_depend_on_the_chunks() -> None:
    keys, queries = keys_of(500), keys_of(20)
    squared = ((queries[:, None] - keys[None]) ** 2).sum(axis=2)
    brute = np.argsort(squared, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(exact([keys], queries, 9), brute)
    np.testing.assert_array_equal(exact([keys[:4], keys[4:90], keys[90:]], queries, 9), brute)


def test_many_lists_are_tried_at_ten_million_less_what_is_measured() -> None:
    few, many = contestants(1_000_000, 256), contestants(10_000_000 - 32_768, 256)
    assert len(few) == 4
    assert len(many) == 8
    assert many["RaBitQfs 16,384 lists"] == ("RR256,IVF16384_HNSW32,RaBitQfs", 16_384)
    assert list(contestants(1_000_000, 256, ["PQ128x4fs"])) == ["PQ128x4fs"]
    assert contestants(1_000_000, 256, []) == contestants(1_000_000, 16) == {}
    with pytest.raises(SettingError, match="no index 'HNSW' of faiss here; choose from PQ128x4fs"):
        contestants(1_000_000, 256, ["HNSW"])


@pytest.mark.slow
def test_the_strongest_of_faiss_find_what_is_near(tmp_path: Path) -> None:
    scratch, keys = Scratch(tmp_path, 128), keys_of(3_000, 128)
    scratch.append(keys, np.arange(3_000))
    with closing(StockProcess(1, tmp_path, 128)) as stock:
        stock.fill(3_000)
        for spec, lists in contestants(3_000, 128).values():
            assert stock.contest(spec, lists, 3_000, block=512) > 0
            _, squared, words = stock.search_contestant(keys[:50], 10, probes=8)
            assert np.mean((words == np.arange(50)[:, None]).any(axis=1)) > 0.9
            assert (words >= 0).all()
            assert np.isfinite(squared).all()


def _hold(folder: str) -> None:
    """A reader that waits beside its faiss until it is killed."""
    scratch = Scratch(Path(folder), 16)
    scratch.append(keys_of(1_000), np.arange(1_000))
    with closing(StockProcess(1, Path(folder), 16)) as stock:
        stock.fill(1_000)
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        time.sleep(600)


def test_a_reader_that_is_killed_leaves_no_process_and_no_files(tmp_path: Path) -> None:
    folder = tmp_path / "states"
    folder.mkdir()
    (tmp_path / "reader.py").write_text(
        "from tests.benchmarks.test_stock import _hold\n"
        f"if __name__ == '__main__': _hold({str(folder)!r})\n"
    )
    reader = subprocess.Popen(
        [sys.executable, str(tmp_path / "reader.py")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert reader.stdout is not None
    faiss_process = int(reader.stdout.readline())
    reader.send_signal(signal.SIGKILL)
    reader.wait()
    reader.stdout.close()
    until = time.monotonic() + 30
    while folder.exists() or Path(f"/proc/{faiss_process}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
