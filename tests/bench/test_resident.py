import sys

import numpy as np
import pytest

from unbounded.bench.resident import Peak, resident

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
