"""Several texts through one network side by side."""

from collections.abc import Sequence

import numpy as np

from unbounded.lm.recurrent import RecurrentModel
from unbounded.types import State

Advanced = tuple[np.ndarray, State]
"""The hidden state after each word, and the state after the last; texts differ in length."""

Job = tuple[State, np.ndarray]
"""A state to go on from, and words."""


def advance_together(lm: RecurrentModel, jobs: Sequence[Job]) -> list[Advanced]:
    """`advance` for each state and its words, of any length: the same, to the bit."""
    return lm.advance_together([state for state, _ in jobs], [words for _, words in jobs])
