"""The memory of this process: now, and at its peak since it was last asked to forget it."""

import ctypes
import gc
import resource
import sys
from pathlib import Path
from typing import final

_PROCESS = Path("/proc/self")


def resident() -> int:
    """Bytes of this process in memory now; its peak where the system does not say."""
    return _status("VmRSS") or _lifetime_peak()


def give_back() -> None:
    """Have the system get back what was freed and is kept for later, where that can be asked for.

    What other work has left behind would count as the memory of whoever comes after it.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return


@final
class Peak:
    """The peak of what is measured; other work is kept out of it by `pause` and `go_on`.

    Where the system cannot forget a peak it is that of the whole process.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.go_on()

    def pause(self) -> None:
        """Count what was reached, and nothing from here to `go_on`."""
        self.bytes = max(self.bytes, _status("VmHWM") or _lifetime_peak())

    def go_on(self) -> None:
        """Count again from here."""
        give_back()
        try:
            (_PROCESS / "clear_refs").write_text("5")
        except OSError:
            return


def _status(name: str) -> int:
    try:
        lines = (_PROCESS / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def _lifetime_peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
