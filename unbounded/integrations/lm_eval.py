"""lm-evaluation-harness: `--model unbounded`, for every model and every memory of ours.

Installed packages are asked for models by entry point (`lm_eval.models`) since the harness knows
plugins. For a release that does not, this module is its command with ours known:

    python -m unbounded.integrations.lm_eval run --model unbounded \\
        --model_args model=smollm2 --tasks TASK
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unbounded.corpus import Reader, read_sentences, words_between
from unbounded.errors import SettingError, needing
from unbounded.lm import TransformerConfig, load_model
from unbounded.memory import SamplingParams, generate
from unbounded.memory import open as open_memory
from unbounded.model import OnlineModel
from unbounded.presets import PRESETS as ROWS
from unbounded.presets import build_preset

with needing("lm_eval, the evaluation harness,", "harness"):
    from lm_eval.api.model import LM

BLOCK = 512
"""Words that are read at once."""

WRITTEN = 256
"""Words that are written at most, unless a task says otherwise."""


class UnboundedLM(LM):  # type: ignore[misc]
    """A model with a memory, as the harness asks for it.

    Perplexities are those of a stream: documents come one after another, each word is scored just
    before it is learned, and what one document taught helps with the next, as in `evaluate`.
    `carry=False` begins each anew. Choices and writing ask what is known, and teach nothing.
    """

    def __init__(
        self,
        model: str | None = None,
        memory: str | None = None,
        row: str = "full",
        first: str | None = None,
        carry: bool = True,
        context: int | None = None,
        key: str = "output",
        **ignored: Any,
    ) -> None:
        """`model` or `memory` is a folder; `first` a text that is read before anything is asked."""
        super().__init__()
        if row not in ROWS:
            raise SettingError(f"row {row!r} is unknown; choose from {', '.join(ROWS)}")
        self._carry = carry
        if memory is not None:
            with open_memory(memory, model, mode="read") as kept:
                self._model, self._online = kept.model, kept.online
            self._fresh = None
        elif model is not None:
            self._model = load_model(Path(model), TransformerConfig(context=context, key=key))
            self._fresh = partial(build_preset, self._model, row)
            self._online = self._fresh()
        else:
            raise SettingError("no model was given; use --model_args model=FOLDER or memory=FOLDER")
        if not carry and (first is not None or memory is not None):
            raise SettingError(
                "carry=False forgets what was read; leave it out, or leave out first and memory"
            )
        if first is not None:
            for sentence in read_sentences(Reader([first]), self._model.tokenizer):
                self._online.read(sentence.words)

    def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
        """Score documents as a stream, each word just before it is learned."""
        found = []
        for request in requests:
            if not self._carry and self._fresh is not None:
                self._online = self._fresh()
            words, nats = self._words(request.args[0]), 0.0
            for start in range(0, len(words), BLOCK):
                probs = self._online.read(words[start : start + BLOCK]).prob
                nats -= float(np.log(probs).sum())
            found.append(-nats)
        return found

    def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
        """Score what follows a context, and whether it is what would be written."""
        return [self._continued(*request.args) for request in requests]

    def generate_until(self, requests: Sequence[Any]) -> list[str]:
        """Write the likeliest next words until one of some strings, or for so many words."""
        return [self._written(*request.args) for request in requests]

    def _words(self, text: str) -> list[str]:
        return words_between(text, self._model.tokenizer)

    def _continued(self, context: str, more: str) -> tuple[float, bool]:
        # Spaces belong to the word that they precede.
        cut = len(context) - len(context.rstrip(" "))
        if cut:
            context, more = context[:-cut], context[-cut:] + more
        whole, before = self._words(context + more), self._words(context)
        online = self._online.fork(reset_context=True)
        if before:
            _, online = online.peek(before)
        nats, greedy = 0.0, True
        for word in whole[len(before) :]:
            probs = online.predict().dense(len(online.vocabulary))[0]
            best = online.vocabulary.decode(probs.argmax()[None])[0]
            reading, online = online.peek([word])
            nats -= math.log(reading.prob[0])
            greedy &= best == word
        return -nats, greedy

    def _written(self, context: str, options: dict[str, Any]) -> str:
        until = options.get("until") or []
        sampling = SamplingParams(
            max_words=int(options.get("max_gen_toks", WRITTEN)),
            temperature=0.0,
            stop=tuple(filter(None, [until] if isinstance(until, str) else until)),
        )
        source = _Asked(self._online.fork(reset_context=True))
        pieces = generate(source, self._model.tokenizer, self._words(context), sampling)
        return "".join(piece.text for piece in pieces)


@dataclass(frozen=True)
class _Asked:
    """A model that words are drawn from, and that learns nothing meanwhile."""

    online: OnlineModel
    version: int = 0


def main() -> None:
    """Run the harness' own command, with our model among those that it knows."""
    import lm_eval.models  # noqa: F401  # its own names first
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.registry import model_registry

    if "unbounded" not in model_registry:
        model_registry.register("unbounded", target="unbounded.integrations.lm_eval:UnboundedLM")
    sys.argv[0] = "lm_eval"
    cli_evaluate()


if __name__ == "__main__":
    main()
