"""Threads: shared by everybody, never waited for, gone after a fork; those that wait give way."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unbounded import _native
from unbounded.datastore.threads import set_search_threads


@pytest.fixture(autouse=True)
def _one_thread_afterwards() -> Iterator[None]:
    yield
    set_search_threads(1)


def nearest(seed: int) -> np.ndarray:
    keys = np.random.default_rng(seed).normal(size=(700, 40)).astype(np.float32)
    return _native.exact_search(keys, keys, np.zeros(700, np.int64), np.arange(700), 5)[1]


def test_any_number_of_threads_finds_the_same() -> None:
    expected = nearest(0)
    for threads in (2, 5, 1):
        set_search_threads(threads)
        assert _native.threads() == threads
        np.testing.assert_array_equal(nearest(0), expected)


def test_callers_at_the_same_time_do_not_disturb_each_other() -> None:
    expected = [nearest(seed) for seed in range(8)]
    set_search_threads(3)
    with ThreadPoolExecutor(4) as pool:
        for found, one in zip(pool.map(nearest, range(8)), expected, strict=True):
            np.testing.assert_array_equal(found, one)


def test_a_forked_process_searches_with_threads_of_its_own() -> None:
    set_search_threads(2)
    expected = nearest(0)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(nearest(0), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("said", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_do_not_spin_unless_told_to(said: str | None, expected: str) -> None:
    where = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    where |= {} if said is None else {"OMP_WAIT_POLICY": said}
    code = "import sys, os, unbounded; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=where, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [expected, "False"]
