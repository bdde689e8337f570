"""Any causal transformer as a language model: frozen, reading for ever, one state a piece."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from unbounded.errors import ModelError
from unbounded.lm.adapter import Adapter
from unbounded.lm.language_model import HeadedModel, Shortlist
from unbounded.lm.learning_head import LearningHead
from unbounded.lm.pytorch import pick
from unbounded.lm.settings import TransformerConfig
from unbounded.shapes import Float, Int
from unbounded.types import Hidden, Ids, Probs, State

Context = Int[np.ndarray, " c"]
"""The pieces of the present context."""

KEPT = 4
"""Attention caches that are kept: of the stream, and of whoever asks from where it stands."""

ROWS = 512
"""States whose probabilities over all pieces are computed at once, to save memory."""


@final
class TransformerModel(HeadedModel):
    """A causal model of `transformers`, frozen, with its output layer as the head.

    What it remembers of a stream is the pieces of the present context. The attention cache that
    goes with them is kept aside and made again if it is not there: the same but for rounding.
    """

    closed = True

    def __init__(self, network: Any, start: int, config: TransformerConfig) -> None:
        self.network = network.eval().requires_grad_(False)
        self.head = find_head(self.network)
        # A network is used where it lies, of which first and last layer may be two places.
        self._place = self.network.get_input_embeddings().weight.device
        self._head_place = self.head.weight.device
        self.base_size, self._inner = self.head.weight.shape
        self.cutoffs = (self.base_size,)
        longest = getattr(network.config, "max_position_embeddings", None)
        self.config = config.fitted(longest)
        self.first = start
        self._body = self.network.base_model
        self._caught: list[Tensor] = []
        wide = 1
        if config.key == "feedforward":
            last_feedforward(self.network).register_forward_pre_hook(self._catch, with_kwargs=True)
            wide = 2
        self._caches: OrderedDict[bytes, list[tuple[Tensor, Tensor]]] = OrderedDict()
        self._lock = Lock()
        self.width = self._inner * wide
        self.key_part = slice(self._inner * (wide - 1), None)
        self._check()

    def start(self) -> tuple[Hidden, State]:
        """The hidden state after the start mark."""
        ids = np.array([self.first])
        return self._read(np.empty(0, np.int64), ids), (ids,)

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The hidden state after each piece, and the state after the last."""
        (ids,), parts, done = state, [np.empty((0, self.width), np.float32)], 0
        while done < len(words):
            ids = self._turned(ids)
            room = self._context - len(ids)
            new = np.minimum(words[done : done + room], self.base_size - 1)
            parts.append(self._read(ids, new))
            ids = np.concatenate([ids, new])
            done += len(new)
        return np.concatenate(parts), (ids,)

    def outputs(self, hidden: Hidden) -> Float[np.ndarray, "n inner"]:
        """The part of a state that the output layer reads."""
        return np.ascontiguousarray(hidden[:, : self._inner])

    @property
    def first_weight(self) -> Float[np.ndarray, "columns inner"]:
        """The weights of the output layer."""
        return self.head.weight.cpu().numpy()

    @torch.inference_mode()
    def shortlist(self, hidden: Hidden, words: Ids) -> Shortlist:
        """The softmax over all pieces."""
        known = (words >= 0) & (words < self.base_size)
        column = np.where(known, words, -1)
        odds = self._logits(self._on_head(self.outputs(hidden)))
        picked = pick(odds, self._on_head(np.maximum(column, 0)))
        share = np.where(known, picked.cpu().double().exp().numpy(), 0.0)
        return Shortlist(column, odds.cpu().numpy(), share, share)

    def learning_head(self) -> LearningHead:
        """An adapter beneath the output layer, which is too large to copy."""
        return Adapter(self)

    @torch.inference_mode()
    def slopes(self, outputs: Hidden, words: Ids) -> tuple[Probs, Hidden]:
        """The probability of one piece a step, and the slope of its surprise along the state.

        Both zero for what is no piece.
        """
        probs, slopes = np.zeros(len(words)), np.zeros((len(words), self._inner), np.float32)
        known = words < self.base_size
        odds = self._logits(self._on_head(outputs[known])).log_softmax(1)
        piece = self._on_head(words[known])[:, None]
        probs[known] = odds.gather(1, piece)[:, 0].cpu().double().exp().numpy()
        errors = odds.exp_().scatter_add_(1, piece, torch.full_like(odds[:, :1], -1))
        slopes[known] = (errors @ self.head.weight).cpu().numpy()
        return probs, slopes

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one piece a step; zero for what is none."""
        probs = np.zeros(len(words))
        for start in range(0, len(words), ROWS):
            rows = slice(start, start + ROWS)
            probs[rows] = self.shortlist(hidden[rows], words[rows]).prob
        return probs

    @torch.inference_mode()
    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every piece, at each step."""
        found = self._logits(self._on_head(self.outputs(hidden))).log_softmax(1)
        return found.cpu().double().exp().numpy()

    @contextmanager
    def overheard(self, hear: Callable[[Tensor], None]) -> Iterator[None]:
        """Tell someone the states of every pass that others make: texts, pieces, width."""

        def told(module: nn.Module, given: Any, found: Any) -> None:
            states = found.last_hidden_state
            if self.config.key == "feedforward":
                caught = self._caught[-1].reshape(states.shape[0], states.shape[1], -1)
                self._caught.clear()
                states = torch.cat([states, caught.to(states.device)], 2)
            hear(states)

        hook = self._body.register_forward_hook(told)
        try:
            yield
        finally:
            hook.remove()

    @property
    def _context(self) -> int:
        assert self.config.context is not None
        return self.config.context

    def _turned(self, ids: Context) -> np.ndarray:
        """The context that the next piece is read in: a new one where the old is full."""
        if len(ids) < self._context:
            return ids
        keep = self.config.keep or 0
        return np.concatenate([[self.first], ids[len(ids) - keep :]])

    def _read(self, before: Context, new: Ids) -> Hidden:
        """The states after new pieces that follow others in one context."""
        with torch.inference_mode():
            past = self._past(before)
            if not past and len(before):
                past = self._forward(before, [])[1]
            hidden, layers = self._forward(new, past)
            if len(before) + len(new) < self._context:
                # From a full context nobody goes on.
                self._remember(np.concatenate([before, new]), layers)
            return hidden.cpu().numpy()

    def _logits(self, hidden: Tensor) -> Tensor:
        """What the output layer says: a new tensor, which may be changed."""
        logits = hidden @ self.head.weight.T
        return logits if self.head.bias is None else logits.add_(self.head.bias)

    def _on_head(self, array: np.ndarray) -> Tensor:
        """An array where the output layer lies."""
        return torch.from_numpy(array).to(self._head_place)

    def _forward(
        self, pieces: Context, past: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        from transformers import DynamicCache

        cache = DynamicCache()
        for number, (keys, values) in enumerate(past):
            cache.update(keys, values, number)
        with self._lock:
            # What a hook catches belongs to one forward pass.
            self._caught.clear()
            ids = torch.from_numpy(np.asarray(pieces, np.int64))[None].to(self._place)
            # All of it is text: without a mask, a piece that pads elsewhere would be warned about.
            have = past[0][0].shape[-2] if past else 0
            mask = torch.ones(1, have + len(pieces), dtype=torch.int64, device=self._place)
            found = self._body(
                input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True
            )
            hidden = found.last_hidden_state[0]
            if self.config.key == "feedforward":
                caught = self._caught[-1].reshape(len(pieces), -1)
                hidden = torch.cat([hidden, caught.to(hidden.device)], 1)
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        return hidden.float(), layers

    def _past(self, before: Context) -> list[tuple[Tensor, Tensor]]:
        """The attention cache of a context, if it is still there; otherwise none."""
        with self._lock:
            name = np.asarray(before, np.int64).tobytes()
            if name in self._caches:
                self._caches.move_to_end(name)
                return self._caches[name]
        return []

    def _remember(self, ids: Context, layers: list[tuple[Tensor, Tensor]]) -> None:
        with self._lock:
            self._caches[np.asarray(ids, np.int64).tobytes()] = layers
            while len(self._caches) > KEPT:
                self._caches.popitem(last=False)

    def _catch(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._caught.append(given[0] if given else next(iter(named.values())))

    @torch.inference_mode()
    def _check(self) -> None:
        """Refuse a model whose probabilities are not a softmax of its output layer."""
        sample = np.arange(min(self.base_size, self._context - 1, 5))
        hidden = self._forward(sample, [])[0][:, : self._inner]
        ids = torch.from_numpy(sample)[None].to(self._place)
        logits = self.network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].float()
        mine = self._logits(hidden.to(self._head_place)).log_softmax(1)
        if not torch.allclose(mine, logits.log_softmax(1), rtol=1e-3, atol=1e-3):
            raise ModelError(
                f"{type(self.network).__name__} has no usable head: its probabilities are not "
                "the softmax of its output layer (they are scaled or capped behind it); use a "
                "model without that"
            )


def find_head(network: Any) -> nn.Linear:
    """The output layer: one linear map to all pieces."""
    found = getattr(network, "get_output_embeddings", lambda: None)()
    if not isinstance(found, nn.Linear):
        kind = "none" if found is None else type(found).__name__
        raise ModelError(
            f"{type(network).__name__} has no usable head: a linear output layer over the "
            f"vocabulary is needed, found {kind}; use a causal language model"
        )
    return found.float()


def last_feedforward(network: Any) -> nn.Module:
    """The feed-forward block of the last layer."""
    lists = [part for part in network.base_model.modules() if isinstance(part, nn.ModuleList)]
    deepest = max(lists, key=lambda part: sum(w.numel() for w in part.parameters()), default=None)
    for name, part in [] if not deepest else list(deepest[-1].named_children()):
        if name in ("mlp", "feed_forward", "ffn"):
            return part
    raise ModelError(
        f"the last feed-forward block of {type(network).__name__} was not found; use --key output"
    )
