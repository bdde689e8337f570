"""Several texts through one network side by side."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unbounded.lm.model import RecurrentModel
from unbounded.types import State

Advanced = tuple[np.ndarray, State]
"""The hidden state after each word, and the state after the last; texts differ in length."""

Job = tuple[State, np.ndarray]
"""A state to go on from, and words."""


def advance_together(lm: RecurrentModel, jobs: Sequence[Job]) -> list[Advanced]:
    """`advance` for each state and its words; equal to it but for the last bits.

    Texts are of any length, at least one word each.
    """
    if len(jobs) == 1:
        return [lm.advance(*jobs[0])]
    # The longest first, as packing wants it.
    order = sorted(range(len(jobs)), key=lambda i: -len(jobs[i][1]))
    lengths = [len(jobs[i][1]) for i in order]
    rows = np.zeros((lengths[0], len(jobs)), np.int64)
    for column, i in enumerate(order):
        rows[: lengths[column], column] = jobs[i][1]
    vectors = torch.from_numpy(lm.vectors(rows.ravel()).reshape(*rows.shape, lm.width))
    with torch.inference_mode():
        states = [
            torch.cat([torch.tensor(jobs[i][0][part]) for i in order], dim=1)
            for part in range(len(jobs[0][0]))
        ]
        packed = pack_padded_sequence(vectors, torch.tensor(lengths))
        found, after = lm.encoder.cell(packed, tuple(states) if len(states) > 1 else states[0])
        hidden = pad_packed_sequence(found)[0].numpy()
        parts = [part.numpy() for part in (after if isinstance(after, tuple) else (after,))]
    out: list[Advanced] = [(np.empty((0, lm.width), np.float32), ())] * len(jobs)
    for column, i in enumerate(order):
        mine = np.ascontiguousarray(hidden[: lengths[column], column])
        out[i] = mine, tuple(part[:, column : column + 1].copy() for part in parts)
    return out
