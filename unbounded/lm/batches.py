"""Ids → training blocks: parallel streams, cut into short stretches for BPTT."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from unbounded.types import Ids


class Batch(NamedTuple):
    """Inputs and targets of one step, (bptt, streams); the targets are the inputs' next words."""

    inputs: Tensor
    targets: Tensor


class Batches:
    """The training text as `streams` parallel streams, each read in order, `bptt` words a step.

    Every word of the text is a target once; the last few that do not fill a stream are left out.

    >>> import numpy as np
    >>> batches = Batches(np.arange(1, 11), streams=2, bptt=3, sentence_end=0)
    >>> len(batches), [batch.targets.T.tolist() for batch in batches.after(0)]
    (2, [[[1, 2, 3], [6, 7, 8]], [[4, 5], [9, 10]]])
    >>> [batch.inputs.T.tolist() for batch in batches.after(1)]
    [[[3, 4], [8, 9]]]
    """

    def __init__(self, words: Ids, streams: int, bptt: int, sentence_end: int) -> None:
        self.streams = streams
        self.bptt = bptt
        self.length = len(words) // streams
        targets = torch.from_numpy(words[: self.length * streams]).long()
        inputs = torch.cat([torch.tensor([sentence_end]), targets[:-1]])
        self._targets = targets.view(streams, self.length).T.contiguous()
        self._inputs = inputs.view(streams, self.length).T.contiguous()

    def __len__(self) -> int:
        return -(-self.length // self.bptt)

    def after(self, done: int) -> Iterator[Batch]:
        """The batches of one pass, without the first `done`."""
        for start in range(done * self.bptt, self.length, self.bptt):
            stretch = slice(start, start + self.bptt)
            yield Batch(self._inputs[stretch], self._targets[stretch])
