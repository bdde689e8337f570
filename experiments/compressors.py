"""Compressors that start from a text: what another text adds, the time and the memory it takes."""

import lzma
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from unbounded.corpus import SENTENCE_END
from unbounded.corpus.tokenizer import may_go_on
from unbounded.errors import SettingError, needing

PPMD_ORDER = 16
PPMD_MEMORY = 1 << 30
"""Enough that the model of a text of tens of megabytes never starts anew."""


def written(words: Sequence[str]) -> str:
    """The words as a text: a space after each, but a line end where a sentence ends.

    There is nothing after a piece of a word that may go on.

    >>> written(["it", "rains", "</s>", "it"])
    'it rains\\nit '
    """
    text = "".join(word if may_go_on(word) else f"{word} " for word in words)
    return text.replace(f" {SENTENCE_END} ", "\n").replace(f"{SENTENCE_END} ", "")


def xz(text: bytes) -> int:
    """`xz -9e`, with a dictionary that holds the whole text."""
    filters = [
        {
            "id": lzma.FILTER_LZMA2,
            "preset": 9 | lzma.PRESET_EXTREME,
            "dict_size": max(1 << 26, 1 << len(text).bit_length()),
        }
    ]
    return len(lzma.compress(text, filters=filters))


def zstd(text: bytes) -> int:
    """`zstd --ultra -22 --long`, with a window that holds the whole text."""
    import zstandard

    window = min(max(27, len(text).bit_length()), zstandard.WINDOWLOG_MAX)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        22, window_log=window, enable_ldm=True
    )
    return len(zstandard.ZstdCompressor(compression_params=parameters).compress(text))


def ppmd(text: bytes) -> int:
    """PPMd, variant H as in 7-Zip."""
    with needing("pyppmd, which packs as 7-Zip's PPMd does,", "compressors"):
        import pyppmd
    encoder = pyppmd.Ppmd7Encoder(PPMD_ORDER, PPMD_MEMORY)
    return len(encoder.encode(text)) + len(encoder.flush())


def zpaq(text: bytes) -> int:
    """`zpaq -m5`, contexts mixed bit by bit; it forgets everything each 64 MiB."""
    if shutil.which("zpaq") is None:
        raise SettingError("the program zpaq is not installed; install the package zpaq of Debian")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text").write_bytes(text)
        command = ["zpaq", "add", "packed.zpaq", "text", "-m5", "-t1"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return (Path(folder) / "packed.zpaq").stat().st_size


COMPRESSORS: dict[str, Callable[[bytes], int]] = {
    "zstd --ultra -22 --long": zstd,
    "xz -9e": xz,
    f"PPMd, order {PPMD_ORDER}": ppmd,
    "zpaq -m5": zpaq,
}
"""How many bytes each makes of a text."""


def installed() -> list[str]:
    """The compressors that are here; only zpaq is no package of Python's."""
    return [name for name in COMPRESSORS if "zpaq" not in name or shutil.which("zpaq")]


def packed_after(name: str, before: str, test: str) -> dict[str, Any]:
    """What the test text adds to the packed training text, in a process of its own."""
    texts = before.encode(), (before + test).encode()
    # One process that does nothing else, so that its memory is the compressor's.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        (small, early, _), (large, late, most) = pool.map(_packed, [name, name], texts)
    return {
        "name": name,
        "bits_per_character": 8 * (large - small) / len(test),
        "seconds": late - early,
        "memory": most,
    }


def _packed(name: str, text: bytes) -> tuple[int, float, int]:
    """Bytes of the packed text, seconds, and bytes of memory beyond what was there before."""
    Path("/proc/self/clear_refs").write_text("5")  # What importing took at most is forgotten.
    before, began = _most(), time.perf_counter()
    size = COMPRESSORS[name](text)
    seconds = time.perf_counter() - began
    if "zpaq" in name:  # The program is a process of its own.
        return size, seconds, 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return size, seconds, _most() - before


def _most() -> int:
    """The most memory that this process has had, in bytes."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    )
    return 1024 * int(line.split()[1])
