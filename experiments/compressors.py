"""Bits per character against compressors, each starting from the text that the network has read."""

import bz2
import lzma
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from experiments.cells import Cell, run_cell
from experiments.corpora import Corpora
from unbounded.corpus import Reader, Splitter, read_sentences
from unbounded.errors import MissingExtra
from unbounded.evaluation.metrics import written
from unbounded.lm import Pretrained

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


COMPRESSORS: dict[str, Callable[[bytes], int]] = {
    "bzip2 -9": bzip2,
    "zstd --ultra -22 --long": zstd,
    "xz -9e": xz,
    f"PPMd, order {PPMD_ORDER}": ppmd,
}
"""How many bytes each makes of a text."""


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
    packed = [_packed(name, before, test) for name in COMPRESSORS]
    result = run_cell(replace(cell, mixture="online"), model, corpora, progress, protocol="open")
    return {**result, "cell": asdict(cell), "characters": len(test), "compressors": packed}


def text_of(path: Path, tokenizer: Splitter, tokens: int) -> str:
    """The first words of a file as the network gets them, written out."""
    sentences = read_sentences(Reader([path]), tokenizer)
    return written(list(islice(chain.from_iterable(s.words for s in sentences), tokens)))


def _packed(name: str, before: str, test: str) -> dict[str, Any]:
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
    try:
        import pyppmd
    except ImportError:
        raise MissingExtra("pyppmd, which packs as 7-Zip's PPMd does,", "compressors") from None
    return pyppmd
