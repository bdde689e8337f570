"""Bits per character against compressors, each starting from the text that the network has read."""

import bz2
import lzma
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from experiments.cells import run_cell
from experiments.config import Cell
from experiments.corpora import Corpora, domain_order, spoken
from experiments.results import Found, notes
from unbounded.corpus import Reader, Splitter, read_sentences
from unbounded.errors import SettingError, needing
from unbounded.evaluation.metrics import written
from unbounded.evaluation.rows import TITLES
from unbounded.evaluation.tables import Entry, Grid, Line, Part
from unbounded.lm import Pretrained

COMPARED = (
    "Nothing of the future is known: where the tables above have a uniform over the words of "
    "training and test text, OOV words are here spelled by a character model that has read the "
    "network’s vocabulary. So these figures stand in no table with those above. Compressors start "
    "from what our model starts from: what is counted is how much longer the test text makes the "
    "packed training text. Both are given the same text: the words after tokenization, a space "
    "between them, a line end after a sentence."
)

PPMD_ORDER = 16
PPMD_MEMORY = 1 << 30
"""Enough that the model of a text of tens of megabytes never starts anew."""


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


def bzip2(text: bytes) -> int:
    """`bzip2 -9`, which forgets everything each 900,000 bytes."""
    return len(bz2.compress(text, 9))


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
    encoder = _pyppmd().Ppmd7Encoder(PPMD_ORDER, PPMD_MEMORY)
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
    "bzip2 -9": bzip2,
    "zstd --ultra -22 --long": zstd,
    "xz -9e": xz,
    f"PPMd, order {PPMD_ORDER}": ppmd,
    "zpaq -m5": zpaq,
}
"""How many bytes each makes of a text."""


def installed() -> list[str]:
    """The compressors that are here; only zpaq is no package of Python's."""
    return [name for name in COMPRESSORS if "zpaq" not in name or shutil.which("zpaq")]


def run_compressors(
    cell: Cell,
    model: Pretrained,
    corpora: Corpora,
    train_tokens: int,
    progress: Callable[[int], Callable[[int, str], None]],
) -> dict[str, Any]:
    """Read the test text under every row of the open protocol, and pack the same text.

    Compressors have no trained network: instead they pack the training text first, and what counts
    is how much longer the test text makes the result.
    """
    _pyppmd()
    before = text_of(corpora.text(cell.train, "train"), model.tokenizer, train_tokens)
    test = text_of(corpora.text(cell.test, "test"), model.tokenizer, cell.tokens)
    packed = [packed_after(name, before, test) for name in installed()]
    result = run_cell(replace(cell, mixture="online"), model, corpora, progress, protocol="open")
    return {**result, "cell": asdict(cell), "characters": len(test), "compressors": packed}


def text_of(path: Path, tokenizer: Splitter, tokens: int) -> str:
    """The first words of a file as the network gets them, written out."""
    sentences = read_sentences(Reader([path]), tokenizer)
    return written(list(islice(chain.from_iterable(s.words for s in sentences), tokens)))


def packed_after(name: str, before: str, test: str) -> dict[str, Any]:
    """What the test text adds to the packed training text."""
    began = time.perf_counter()
    compress = COMPRESSORS[name]
    extra = compress((before + test).encode()) - compress(before.encode())
    return {
        "name": name,
        "bytes": extra,
        "bits_per_character": 8 * extra / len(test),
        "seconds": time.perf_counter() - began,
    }


def _pyppmd() -> Any:
    with needing("pyppmd, which packs as 7-Zip's PPMd does,", "compressors"):
        import pyppmd
    return pyppmd


def bits_grid(found: Found) -> Grid:
    """One part a training domain, one line a compressor or row, one column a test domain."""
    trains = list(dict.fromkeys(sorted((train for train, _ in found.cells), key=domain_order)))
    tests = list(dict.fromkeys(sorted((test for _, test in found.cells), key=domain_order)))
    parts = []
    for train in trains:
        bits = {test: _bits(found, train, test) for test in tests}
        lines = [
            Line(title, tuple(_entry(bits[test], title) for test in tests))
            for title in dict.fromkeys(title for cell in bits.values() for title in cell)
        ]
        parts.append(Part(f"trained on {spoken(train)}", tuple(lines)))
    return Grid(
        "Bits per character of the test text, given the training text",
        ("model or compressor", *map(spoken, tests)),
        tuple(parts),
        notes(found),
    )


def _bits(found: Found, train: str, test: str) -> dict[str, float]:
    """Bits per character by what people call it, compressors first."""
    result = found.cells.get((train, test), {})
    packed = {one["name"]: one["bits_per_character"] for one in result.get("compressors", ())}
    ours = {TITLES[row["name"]]: row.get("bits_per_character") for row in result.get("rows", ())}
    every = {**packed, **ours}
    return {k: float(v) for k, v in every.items() if v is not None and math.isfinite(v)}


def _entry(cell: dict[str, float], title: str) -> Entry:
    if title not in cell:
        return Entry()
    return Entry(f"{cell[title]:.3f}", best=cell[title] == min(cell.values()))
