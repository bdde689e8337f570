"""Writing by `transformers`' own `generate`, with every step's logits from somewhere else."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from unbounded.errors import SettingError
from unbounded.lm.transformer import TransformerModel
from unbounded.shapes import Float
from unbounded.types import Hidden

Ask = Callable[[tuple[int, ...], Hidden], Float[np.ndarray, " v"] | None]
"""Told all pieces of a text and the states after its last ones, says how likely each piece is next;
nothing if the network's own word stands."""


def generate(lm: TransformerModel, ask: Ask, pieces: Any, **options: Any) -> Any:
    """As `generate` of the network: greedy, sampling, beams, whatever the options say.

    The states are those of the very passes that `generate` makes, overheard by a hook on the
    network's body. What `transformers` forbids (a bad word, an end too early) stays forbidden.
    """
    if not isinstance(pieces, Tensor):
        pieces = torch.tensor(pieces)
    mask = options.get("attention_mask")
    processor = _Processor(ask, torch.ones_like(pieces) if mask is None else mask)
    options["attention_mask"] = torch.ones_like(pieces) if mask is None else mask
    given = list(options.pop("logits_processor", None) or [])
    with lm.overheard(processor.hear), torch.inference_mode():
        return lm.network.generate(pieces, logits_processor=[processor, *given], **options)


@final
class _Processor:
    """Replaces logits by logarithms of what is asked for, row by row."""

    def __init__(self, ask: Ask, mask: Tensor) -> None:
        self._ask = ask
        # A shorter text of a batch is padded on the left; its states begin behind that.
        self._padding = (mask == 0).sum(1).tolist()
        self._states: Tensor | None = None

    def hear(self, states: Tensor) -> None:
        self._states = states

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._states is None or len(self._states) != len(input_ids):
            raise SettingError(
                "generation in which one pass is for several steps was asked for; leave out "
                "assistants and chunks"
            )
        states, self._states = self._states.float().numpy(), None
        copies = len(input_ids) // len(self._padding)
        found = scores.clone()
        for row, ids in enumerate(input_ids.tolist()):
            skip = self._padding[row // copies]
            new = states[row]
            if len(new) == len(ids):
                new = new[skip:]
            probs = self._ask(tuple(ids[skip:]), np.ascontiguousarray(new))
            if probs is not None:
                logs = torch.from_numpy(np.log(np.maximum(probs, 1e-300)))
                found[row] = torch.where(scores[row].isneginf(), scores[row], logs.to(scores.dtype))
        return found
