"""A state made of states: the arrays of each part under its name and a dot."""

from collections.abc import Mapping

import numpy as np


def under(name: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A part's arrays as those of the whole.

    >>> list(under("index", {"keys": np.zeros(1)}))
    ['index.keys']
    """
    return {f"{name}.{part}": array for part, array in state.items()}


def part(name: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of one part, as it gave them.

    >>> list(part("index", {"words": np.zeros(1), "index.keys": np.zeros(1)}))
    ['keys']
    """
    prefix = f"{name}."
    return {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
