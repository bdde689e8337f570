"""`generate` of `transformers` with a memory: greedy, sampling and beams, as they are known."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from unbounded.corpus import words_between
from unbounded.errors import ModelError, SettingError
from unbounded.experts import Cache
from unbounded.lm import Pretrained, TransformerModel
from unbounded.model import OnlineModel
from unbounded.shapes import Float
from unbounded.types import Hidden

Ask = Callable[[tuple[int, ...], Hidden], Float[np.ndarray, " v"] | None]
"""Told all pieces of a text and the states after its last ones, says how likely each piece is next;
nothing if the network's own word stands."""


@final
class Writer:
    """A transformer that writes with what a memory knows.

    `generate` takes what `generate` of the network takes, and gives what it gives. A text stands at
    its own beginning, whatever was read last. What is written is not learned unless asked for; with
    a memory that is empty it is, piece for piece, what the network writes alone.
    """

    def __init__(self, model: Pretrained, online: OnlineModel) -> None:
        if not isinstance(model.lm, TransformerModel):
            raise ModelError(
                "only a transformer has 'generate'; use 'complete' of a memory for this model"
            )
        if online.lm is not model.lm:
            raise ModelError(
                "the memory belongs to another model; build it with the one that writes"
            )
        self._model, self._lm = model, model.lm
        self._online = online
        self._before: dict[tuple[int, ...], OnlineModel] = {}
        self._now: dict[tuple[int, ...], OnlineModel] = {}

    def generate(self, input_ids: Any, *, insert: bool = False, **options: Any) -> Any:
        """Go on writing after each text of a batch; `insert` reads what was written of one text."""
        rows = len(input_ids)
        if insert and rows != 1:
            raise SettingError(f"{rows} texts to write and to learn; give one at a time")
        self._before, self._now = {}, {}
        written = _generate(self._lm, self._ask, input_ids, **options)
        if insert:
            ids = getattr(written, "sequences", written)[0, len(input_ids[0]) :].cpu().numpy()
            self._online.read(self._model.vocabulary.decode(ids))
        return written

    def write(self, text: str, **options: Any) -> str:
        """Go on with a text, as text."""
        names = self._model.vocabulary.lookup(words_between(text, self._model.tokenizer))
        start = [self._lm.first, *names.tolist()]
        written = self.generate([start], **options)
        new = getattr(written, "sequences", written)[0, len(start) :].cpu().numpy()
        shown = self._model.tokenizer.text
        # A piece may be half of something: what is new is what both together have more.
        before = self._model.vocabulary.decode(names)
        whole = shown([*before, *self._model.vocabulary.decode(new)])
        return whole.removeprefix(shown(before))

    def _ask(self, ids: tuple[int, ...], states: Hidden) -> Float[np.ndarray, " v"] | None:
        """What all experts together say is next."""
        if self._empty():
            return None
        if len(states) == len(ids):
            # The beginning of a text: its first state is before its second piece.
            before, new = self._online.fork(hidden=states[:1]), ids[1:]
            states = states[1:]
        else:
            if ids[:-1] not in self._before:
                # Every text of a step was asked for: a new one begins.
                self._before, self._now = self._now, {}
            before, new = self._before[ids[:-1]], ids[len(ids) - len(states) :]
        fork = before
        if new:
            _, fork = before.peek(self._model.vocabulary.decode(np.array(new)), (states, None))
        self._now[ids] = fork
        dense: Float[np.ndarray, " v"] = fork.predict().dense(self._lm.base_size)[0]
        return dense

    def _empty(self) -> bool:
        caches = [e for e in self._online.experts.values() if isinstance(e, Cache)]
        return not any(len(cache.datastore) for cache in caches)


def _generate(lm: TransformerModel, ask: Ask, pieces: Any, **options: Any) -> Any:
    """As `generate` of the network: greedy, sampling, beams, whatever the options say.

    The states are those of the very passes that `generate` makes, overheard by a hook on the
    network's body. What `transformers` forbids (a bad word, an end too early) stays forbidden.
    """
    place = lm.network.device
    pieces = (pieces if isinstance(pieces, Tensor) else torch.tensor(pieces)).to(place)
    mask = options.get("attention_mask")
    mask = torch.ones_like(pieces) if mask is None else mask.to(place)
    options["attention_mask"] = mask
    processor = _Processor(ask, mask)
    given = list(options.pop("logits_processor", None) or [])
    with lm.overheard(processor.hear), torch.inference_mode():
        return lm.network.generate(pieces, logits_processor=[processor, *given], **options)


@final
class _Processor:
    """Replaces logits by logarithms of what is asked for, row by row."""

    def __init__(self, ask: Ask, mask: Tensor) -> None:
        self._ask = ask
        # A shorter text of a batch is padded on the left; its states begin behind that.
        self._padding = (mask == 0).sum(1).cpu().tolist()
        self._states: Tensor | None = None

    def hear(self, states: Tensor) -> None:
        self._states = states

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._states is None or len(self._states) != len(input_ids):
            raise SettingError(
                "generation in which one pass is for several steps was asked for; leave out "
                "assistants and chunks"
            )
        states, self._states = self._states.float().cpu().numpy(), None
        copies = len(input_ids) // len(self._padding)
        found = scores.clone()
        for row, ids in enumerate(input_ids.cpu().tolist()):
            skip = self._padding[row // copies]
            new = states[row]
            if len(new) == len(ids):
                new = new[skip:]
            probs = self._ask(tuple(ids[skip:]), np.ascontiguousarray(new))
            if probs is not None:
                logs = torch.from_numpy(np.log(np.maximum(probs, 1e-300)))
                allowed = ~scores[row].isneginf()
                found[row] = torch.where(allowed, logs.float().to(scores), scores[row])
        return found
