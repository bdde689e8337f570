"""What can be audited: a model of ours, a Python callable, a model of lm-eval, an HTTP address."""

import json
import sys
import urllib.request
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, final
from urllib.error import HTTPError

import numpy as np

from unbounded.errors import ModelError, SettingError, needing
from unbounded.integrations.audit import Online, Scores
from unbounded.lm import Pretrained
from unbounded.model import OnlineModel
from unbounded.presets import build_preset


@final
class Ours:
    """A preset of a model of ours, which has read nothing yet."""

    def __init__(self, model: Pretrained, preset: str = "full") -> None:
        self._online: OnlineModel = build_preset(model, preset)

    def score(self, words: Sequence[str]) -> Sequence[float]:
        """Score each word just before it is learned."""
        scores: list[float] = np.log(self._online.read(words).prob).tolist()
        return scores

    def predict(self, words: Sequence[str]) -> Sequence[float]:
        """What the next word is, over the whole vocabulary; teaches nothing."""
        # A word without a number could not be spelled; to have one is not to be learned.
        ids = self._online.vocabulary.encode(words)
        dense = self._online.predict().dense(len(self._online.vocabulary))[0]
        scores: list[float] = np.log(dense[ids]).tolist()
        return scores


def python_callable(name: str) -> Callable[..., Any]:
    """`module:name`, found as Python finds modules, in this folder too."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        found = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"{name!r} cannot be had ({error}); give module:callable") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise ModelError(f"{name!r} is a {type(found).__name__}; a callable is needed")
    return found


@final
class Harnessed:
    """A model of lm-eval, asked for each word behind the words before it, with spaces between."""

    def __init__(self, lm: Any) -> None:
        self._lm = lm
        self._past: list[str] = []

    def score(self, words: Sequence[str]) -> Sequence[float]:
        """What each word has behind those before it."""
        pasts = [self._past + list(words[:i]) for i in range(len(words))]
        self._past += words
        return self._asked(pasts, words)

    def predict(self, words: Sequence[str]) -> Sequence[float]:
        """What each word would have as the next."""
        return self._asked([self._past] * len(words), words)

    def _asked(self, pasts: Sequence[list[str]], words: Sequence[str]) -> Sequence[float]:
        from lm_eval.api.instance import Instance

        pairs = [
            (" ".join(past), f" {word}" if past else word)
            for past, word in zip(pasts, words, strict=True)
        ]
        requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
        return [float(found[0]) for found in self._lm.loglikelihood(requests)]


@final
class Addressed:
    """An OpenAI-compatible address, asked to echo a text with the logarithms of its tokens.

    The first word has no score there. Tokens are put together to words by where they begin.
    """

    def __init__(self, address: str, model: str, key: str | None = None) -> None:
        self._url, self._model = address.rstrip("/") + "/completions", model
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._past: list[str] = []

    def score(self, words: Sequence[str]) -> Sequence[float]:
        """What each word has behind those before it."""
        self._past += words
        return self._asked(self._past)[-len(words) :]

    def predict(self, words: Sequence[str]) -> Sequence[float]:
        """What each word would have as the next."""
        return [self._asked([*self._past, word])[-1] for word in words]

    def _asked(self, words: Sequence[str]) -> Sequence[float]:
        prompt, echo = " ".join(words), {"echo": True, "logprobs": 1, "max_tokens": 0}
        body = json.dumps({"model": self._model, "prompt": prompt, **echo})
        request = urllib.request.Request(self._url, body.encode(), self._headers)
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                found = json.load(answer)["choices"][0]["logprobs"]
            return _by_word(words, found["text_offset"], found["token_logprobs"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            said = error.read(200).decode(errors="replace") if isinstance(error, HTTPError) else ""
            raise ModelError(
                f"{self._url} gave no echo with logprobs ({error} {said}); an OpenAI-compatible "
                "address that has them is needed"
            ) from None


def _by_word(
    words: Sequence[str], offsets: Sequence[int], logprobs: Sequence[float | None]
) -> Sequence[float]:
    """Sums by word of what tokens have, which begin at these characters of the joined words.

    >>> _by_word(["a", "bc"], [0, 1, 3], [None, -1.0, -0.5])
    [nan, -1.5]
    """
    sums, ends = np.zeros(len(words)), np.cumsum([len(word) + 1 for word in words])
    for offset, logprob in zip(offsets, logprobs, strict=True):
        # The space before a word belongs to it, as tokens have it.
        at = int(np.searchsorted(ends, offset + 1, side="right"))
        if at < len(words):
            sums[at] += np.nan if logprob is None else logprob
    found: list[float] = sums.tolist()
    return found


def audited(
    what: str, *, preset: str, model: str, key: str | None
) -> tuple[Callable[[], Online] | Scores, Pretrained | None, bool]:
    """What to audit, the model if it is ours, and whether it is one of strings and not of words."""
    if what.startswith(("http://", "https://")):
        return lambda: Addressed(what, model, key), None, True
    if what.startswith("lm_eval:"):
        with needing("lm_eval, the evaluation harness,", "harness"):
            import lm_eval.models  # noqa: F401 - its own names first
            from lm_eval.api.registry import get_model
        kind, _, arguments = what.removeprefix("lm_eval:").partition(",")
        lm = get_model(kind).create_from_arg_string(arguments, {})
        return lambda: Harnessed(lm), None, True
    if ":" in what and not Path(what).exists():
        return python_callable(what), None, False
    from unbounded.lm import load_model

    if not Path(what).exists():
        raise SettingError(
            f"there is no {what!r}; give a model's folder, module:callable, lm_eval:MODEL,… or an "
            "address"
        )
    trained = load_model(Path(what))
    return lambda: Ours(trained, preset), trained, False
