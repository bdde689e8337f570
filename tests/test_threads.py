"""Threads that wait give way, unless somebody says otherwise."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("said", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_do_not_spin_unless_told_to(said: str | None, expected: str) -> None:
    where = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    where |= {} if said is None else {"OMP_WAIT_POLICY": said}
    code = "import sys, os, unbounded; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=where, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [expected, "False"]
