"""Arrays in safetensors files, written whole or not at all: weights, and the words of a text."""

import zlib
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from unbounded.errors import ModelError
from unbounded.files import write_aside
from unbounded.types import Ids


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

    def write(aside: Path) -> None:
        # `save_file` leaves it to the user alone; others may read it as the umask says.
        aside.touch()
        mode = aside.stat().st_mode & 0o777
        save_file(arrays, aside, metadata)
        aside.chmod(mode)

    try:
        write_aside(path, write)
    except SafetensorError as error:
        raise ModelError(
            f"{path} could not be written ({error}); free some space, or choose another place"
        ) from error


def write_words(path: Path, words: Ids, vocabulary: bytes) -> None:
    """Write the ids of a text, bound to a vocabulary: in another one they are other words."""
    metadata = {"checksum": str(words_checksum(words, vocabulary))}
    write_arrays(path, {"words": words.astype(np.int32)}, metadata)


def read_words(path: Path, vocabulary: bytes) -> Ids | None:
    """The ids that `write_words` wrote, None if there are none; a `ValueError` if damaged."""
    if not path.is_file():
        return None
    arrays, metadata = read_arrays(path)
    words: Ids = arrays["words"].astype(np.int64)
    if metadata["checksum"] != str(words_checksum(words, vocabulary)):
        raise ValueError(f"{path.name} is not the text of this vocabulary")
    return words


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
