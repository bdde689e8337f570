"""Arrays in safetensors files, written whole or not at all: weights, and the words of a text.

Where a file must be small, a weight takes 8 bits and each row of them a scale; words are packed.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import zstandard
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from unbounded.errors import ModelError
from unbounded.files import write_atomically
from unbounded.types import Ids

SCALE = ".scale"
"""What is added to the name of 8-bit weights for their scales."""

MOST_PACKED = 64
"""Bytes that one byte of packed words may unpack to; text has about two."""


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All arrays of a file, copied out of it, and its metadata; a `ValueError` at a damaged one."""
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from error


def write_arrays(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a file aside and rename it into place."""
    try:
        with write_atomically(path) as aside:
            # `save_file` leaves it to the user alone; others may read it as the umask says.
            aside.touch()
            mode = aside.stat().st_mode & 0o777
            save_file(arrays, aside, metadata)
            aside.chmod(mode)
    except SafetensorError as error:
        raise ModelError(
            f"{path} could not be written ({error}); free some space, or choose another place"
        ) from error


def in_eight_bits(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same weights as whole numbers from −127 to 127 and a scale a row; biases as they are.

    >>> small = in_eight_bits({"w": np.array([[0.5, -1.27], [0, 0]], np.float32)})
    >>> small["w"].tolist(), small["w.scale"].round(4).tolist()
    ([[50, -127], [0, 0]], [0.009999999776482582, 0.0])
    >>> in_full(small)["w"].round(2).tolist()
    [[0.5, -1.2699999809265137], [0.0, 0.0]]
    """
    small: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        if array.ndim < 2:
            small[name] = array
            continue
        scale = np.abs(array).max(axis=1) / np.float32(127)
        steps = array / np.where(scale == 0, 1, scale)[:, None]
        small[name] = np.rint(steps).astype(np.int8)
        small[name + SCALE] = scale.astype(np.float32)
    return small


def in_full(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights in float32, those in 8 bits too; a `ValueError` where a row has no scale."""
    full: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        scale = weights.get(name + SCALE)
        if name.removesuffix(SCALE) != name and name.removesuffix(SCALE) in weights:
            continue
        if scale is None:
            full[name] = array
            continue
        if scale.dtype != np.float32 or array.dtype != np.int8 or scale.shape != array.shape[:1]:
            raise ValueError(f"{name} and its scales do not fit together")
        full[name] = array * scale[:, None]
    return full


def write_words(path: Path, words: Ids, vocabulary: bytes, *, packed: bool = False) -> None:
    """Write the ids of a text, bound to a vocabulary: in another one they are other words.

    Packed, ids below 65,536 take about a byte each.
    """
    metadata = {"checksum": str(words_checksum(words, vocabulary))}
    arrays = {"words": words.astype(np.int32)}
    if packed:
        assert not len(words) or words.max() < 1 << 16
        data = zstandard.ZstdCompressor(level=22).compress(words.astype("<u2").tobytes())
        arrays = {"packed": np.frombuffer(data, np.uint8)}
    write_arrays(path, arrays, metadata)


def read_words(path: Path, vocabulary: bytes) -> Ids | None:
    """The ids that `write_words` wrote, None if there are none; a `ValueError` if damaged."""
    if not path.is_file():
        return None
    arrays, metadata = read_arrays(path)
    words: Ids = (_unpacked(arrays["packed"]) if "packed" in arrays else arrays["words"]).astype(
        np.int64
    )
    if metadata["checksum"] != str(words_checksum(words, vocabulary)):
        raise ValueError(f"{path.name} is not the text of this vocabulary")
    return words


def _unpacked(packed: np.ndarray) -> np.ndarray:
    data = packed.tobytes()
    try:
        # Looked at before anything is allocated by what the file says.
        if zstandard.get_frame_parameters(data).content_size > MOST_PACKED * len(data):
            raise ValueError("the words would unpack to more than any text does")
        return np.frombuffer(zstandard.ZstdDecompressor().decompress(data), "<u2")
    except zstandard.ZstdError as error:
        raise ValueError(f"the words cannot be unpacked ({error})") from error


def words_checksum(words: Ids, vocabulary: bytes) -> int:
    """The same for the same words in the same order, under the same numbers."""
    return zlib.crc32(np.ascontiguousarray(words, np.int64).tobytes(), zlib.crc32(vocabulary))


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value
