"""What was learned, as arrays: a whole state, or what has come since; one protocol for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

Arrays = Mapping[str, np.ndarray]


class NoDelta(Exception):
    """What has come since cannot be told; take the whole state."""


class Stateful(ABC):
    """Something that learns, and can be written down."""

    @abstractmethod
    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """All that was learned; or what has come since so many words, with all that is small.

        What follows from the words alone is not told again. Raises `NoDelta` where that is not
        known; from then on, and wherever it was asked for, it is.
        """

    @abstractmethod
    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote a whole state and the deltas after it; arrays may be kept and changed.

        What is small is needed in the last part only. With a delta come the words that were read,
        as `ids`, in `blocks` of such lengths, with a full vocabulary of such `sizes`.
        """


def under(name: str, state: Arrays) -> dict[str, np.ndarray]:
    """A part's arrays as those of the whole.

    >>> list(under("index", {"keys": np.zeros(1)}))
    ['index.keys']
    """
    return {f"{name}.{part}": array for part, array in state.items()}


def part(name: str, state: Arrays) -> dict[str, np.ndarray]:
    """The arrays of one part, as it gave them.

    >>> list(part("index", {"words": np.zeros(1), "index.keys": np.zeros(1)}))
    ['keys']
    """
    prefix = f"{name}."
    return {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}


def to_array(words: Iterable[str]) -> np.ndarray:
    """Words as bytes, a line each; none of them has a line's end."""
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def from_array(array: np.ndarray) -> list[str]:
    """The words that were written.

    >>> from_array(to_array(["a", "b"])), from_array(to_array([]))
    (['a', 'b'], [])
    """
    text = array.tobytes().decode()
    return text.split("\n") if text else []
