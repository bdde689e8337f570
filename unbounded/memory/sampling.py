"""Text generation: words drawn from what a memory knows, one after the other, as text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Protocol, runtime_checkable

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter
from unbounded.errors import SettingError, check_type
from unbounded.model import OnlineModel
from unbounded.types import Probs

SHOWN = 100
"""Characters of a word that are shown: an answer is no longer for words that are."""


@dataclass(frozen=True)
class SamplingParams:
    """How words are drawn: greedily at temperature 0, otherwise from a cut-off distribution."""

    max_words: int = 20
    temperature: float = 1.0
    top_k: int | None = None
    """Draw from the k likeliest words only."""
    top_p: float = 1.0
    """Draw from the fewest likeliest words that have this much probability together."""
    seed: int | None = None
    """None draws others each time."""
    stop: tuple[str, ...] = ()
    """Texts before which generation ends."""
    top: int = 0
    """Likeliest words to name with each word."""

    def __post_init__(self) -> None:
        check_type(self.max_words, "max_words", int)
        for name in ("temperature", "top_p"):
            check_type(getattr(self, name), name, float)
        for name in ("top_k", "seed"):
            check_type(getattr(self, name), name, int, NoneType)
        if self.max_words < 1:
            raise SettingError(f"{self.max_words} words were asked for; ask for at least 1")
        if not self.temperature >= 0:
            raise SettingError(f"temperature {self.temperature}; it must be at least 0")
        if self.top_k is not None and self.top_k < 1:
            raise SettingError(f"the {self.top_k} likeliest words; top_k must be at least 1")
        if not 0 < self.top_p <= 1:
            raise SettingError(f"top_p {self.top_p}; it must be above 0 and at most 1")

    def draw(self, probs: Probs, random: np.random.Generator) -> int:
        """One of the words."""
        if self.temperature == 0:
            return int(probs.argmax())
        # The largest becomes zero first: nothing is too much for it, however low the temperature.
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(probs)
            shares = np.exp((logs - logs.max()) / self.temperature)
        if self.top_k is not None or self.top_p < 1:
            order = np.argsort(-shares, kind="stable")
            if self.top_k is not None:
                shares[order[self.top_k :]] = 0
            total = np.cumsum(shares[order]) / shares.sum()
            # The first word is always among them.
            shares[order[1:][total[:-1] >= self.top_p]] = 0
        return int(random.choice(len(shares), p=shares / shares.sum()))


@dataclass(frozen=True)
class Piece:
    """A word as text, with the space before it if there is one; how likely, and what else was."""

    text: str
    log_prob: float
    top: dict[str, float]
    finish: str | None = None
    """In the last one why it is the last: `stop` or `length`."""


@runtime_checkable
class Source(Protocol):
    """What words are drawn from, such as a memory, which may go on learning meanwhile."""

    @property
    def online(self) -> OnlineModel:
        """The model, for asking."""

    @property
    def version(self) -> object:
        """Equal to the one before as long as nothing was learned."""


def generate(
    source: Source,
    splitter: Splitter,
    before: Sequence[str],
    sampling: SamplingParams,
    *,
    spaced: bool = False,
) -> Iterator[Piece]:
    """Words after what came `before`, until there are enough or a stop text appears.

    Between two pieces the source may go on learning; the next word comes from what it knows then.
    `spaced` says whether the text before ends in white space. What could be the beginning of a stop
    text is held back until it is known not to be.
    """
    random = np.random.default_rng(sampling.seed)
    sentence = since_sentence(before)
    words = list(before)
    text, told = "", 0
    held: list[Piece] = []
    for number, (model, probs) in enumerate(steps(source, words)):
        drawn = sampling.draw(probs, random)
        words += model.vocabulary.decode(np.array([drawn]))
        shown = [word[:SHOWN] for word in words[len(before) :]]
        now = _as_text(splitter, sentence, shown, spaced=spaced)
        log_prob = float(np.log(probs[drawn]))

        def instead(word: str, shown: list[str] = shown[:-1], text: str = text) -> str:
            return _as_text(splitter, sentence, [*shown, word[:SHOWN]], spaced=spaced)[len(text) :]

        top = top_texts(model, probs, sampling.top, drawn, now[len(text) :], instead)
        held.append(Piece(now[len(text) :], log_prob, top))
        text = now
        cut = _first_stop(text, sampling.stop)
        if cut is not None or number == sampling.max_words - 1:
            yield from _cut(held, told, len(text) if cut is None else cut, stopped=cut is not None)
            return
        while held and _safe(text, told + len(held[0].text), sampling.stop):
            told += len(held[0].text)
            yield held.pop(0)


def steps(source: Source, words: list[str]) -> Iterator[tuple[OnlineModel, Probs]]:
    """Behind the words so far, the model and what it says of the next, which is then added to them.

    Between two steps the source may go on learning.
    """
    version: object = None
    while True:
        if version != (version := source.version):
            model = after(source.online, words)
        yield model, model.predict().dense(len(model.vocabulary))[0]
        _, model = model.peek(words[-1:])


def after(model: OnlineModel, words: Sequence[str]) -> OnlineModel:
    """The model behind words that are not learned."""
    return model.peek(words)[1] if words else model


def follows_space(text: str, splitter: Splitter) -> bool:
    """Whether what is written behind a text needs no space before it."""
    return splitter.parted and (not text or text[-1].isspace())


def top_texts(
    model: OnlineModel,
    probs: Probs,
    n: int,
    number: int,
    said: str,
    instead: Callable[[str], str],
) -> dict[str, float]:
    """The likeliest words, and the one that was `said`, with the logarithm of how likely each is.

    Each as it would stand in the text: `instead` writes another word there. Of two that are written
    alike the likelier counts.
    """
    if not n:
        return {}
    best = np.argpartition(-probs, min(n, len(probs) - 1))[:n]
    if number < len(probs):
        best = np.union1d(best, [number])
    best = best[np.argsort(-probs[best], kind="stable")]
    words = model.vocabulary.decode(best)
    found: dict[str, float] = {}
    for one, word, prob in zip(best.tolist(), words, np.log(probs[best]).tolist(), strict=True):
        found.setdefault(said if one == number else instead(word), prob)
    return found


def since_sentence(words: Sequence[str]) -> list[str]:
    """The words of the sentence that goes on: they decide on quotes and capitals."""
    out: list[str] = []
    for word in reversed(words[-200:]):
        if word == SENTENCE_END:
            break
        out.append(word)
    return out[::-1]


def _as_text(splitter: Splitter, sentence: list[str], said: list[str], *, spaced: bool) -> str:
    before = splitter.text(sentence)
    text = splitter.text([*sentence, *said])[len(before) :]
    return text.lstrip(" ") if spaced else text


def _first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the first stop text begins, if there is one."""
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return min(found) if found else None


def _safe(text: str, end: int, stops: Sequence[str]) -> bool:
    """Whether no stop text can begin before `end`, whatever comes next."""
    for stop in stops:
        for start in range(max(len(text) - len(stop) + 1, 0), end):
            if stop.startswith(text[start:]):
                return False
    return True


def _cut(held: list[Piece], told: int, end: int, *, stopped: bool) -> Iterator[Piece]:
    """What is held back, up to where it ends; the last says why."""
    out: list[Piece] = []
    for piece in held:
        kept = piece.text[: max(end - told, 0)]
        told += len(piece.text)
        if kept or not stopped:
            top = {kept if text == piece.text else text: p for text, p in piece.top.items()}
            out.append(replace(piece, text=kept, top=top))
    last = out.pop() if out else Piece("", 0.0, {})
    yield from out
    yield replace(last, finish="stop" if stopped else "length")
