import sys

import numpy as np
import pytest

from benchmarks.resident import Peak, give_back, resident

MEGA = 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forget a peak")
def test_what_happens_in_a_pause_is_not_counted() -> None:
    peak, before = Peak(), resident()
    peak.pause()
    np.ones(100 * MEGA, np.uint8).sum()
    peak.go_on()
    peak.pause()
    assert peak.bytes < before + 50 * MEGA
    peak.go_on()
    np.ones(100 * MEGA, np.uint8).sum()
    peak.pause()
    assert peak.bytes > before + 80 * MEGA


@pytest.mark.skipif(sys.platform != "linux", reason="glibc keeps what was freed")
def test_what_was_freed_in_small_pieces_is_given_back() -> None:
    pieces = [bytearray(1000) for _ in range(100_000)]
    # The last is still there, so that the others are a hole.
    last = pieces.pop()
    pieces.clear()
    held = resident()
    give_back()
    assert resident() < held - 50 * MEGA
    assert len(last) == 1000
