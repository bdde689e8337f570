"""Going on writing: words drawn from a memory, as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter
from unbounded.memory import Memory
from unbounded.memory.prediction import SHOWN
from unbounded.model import OnlineModel
from unbounded.types import Probs


@dataclass(frozen=True)
class SamplingParams:
    """How words are drawn."""

    words: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    top: int = 0
    """Likeliest words to name at each step."""


@dataclass(frozen=True)
class Piece:
    """A word as text, with the space before it if there is one; how likely, and what else was."""

    text: str
    log_prob: float
    top: dict[str, float]
    finish: str | None = None


def write(
    memory: Memory, before: Sequence[str], sampling: SamplingParams, *, spaced: bool
) -> Iterator[Piece]:
    """Words after what came `before`, until there are enough or a stop word appears.

    Between two pieces the memory may go on learning; the next word comes from what it knows then.
    `spaced` says whether the text before ends in white space. What could be the beginning of a stop
    word is held back until it is known not to be.
    """
    random = np.random.default_rng(sampling.seed)
    sentence = _since_sentence(before)
    said: list[str] = []
    shown: list[str] = []
    text, told = "", 0
    held: list[Piece] = []
    stamp: object = None
    for number in range(sampling.words):
        if stamp != (stamp := memory.version):
            words = [*before, *said]
            model = memory.online.peek(words)[1] if words else memory.online
        probs = model.predict().dense(len(model.vocabulary))[0]
        drawn = _draw(probs, sampling, random)
        said += model.vocabulary.decode(np.array([drawn]))
        shown.append(said[-1][:SHOWN])
        now = _as_text(memory.model.tokenizer, sentence, shown, spaced=spaced)
        log_prob = float(np.log(probs[drawn]))
        held.append(Piece(now[len(text) :], log_prob, top_words(model, probs, sampling.top)))
        text = now
        cut = _stops(text, sampling.stop)
        last = number == sampling.words - 1
        if cut is not None or last:
            yield from _cut(held, told, len(text) if cut is None else cut, stopped=cut is not None)
            return
        while held and _safe(text, told + len(held[0].text), sampling.stop):
            told += len(held[0].text)
            yield held.pop(0)
        _, model = model.peek(said[-1:])


def follows_space(text: str, splitter: Splitter) -> bool:
    """Whether what is written behind a text needs no space before it."""
    return splitter.parted and (not text or text[-1].isspace())


def top_words(model: OnlineModel, probs: Probs, n: int) -> dict[str, float]:
    """The likeliest words, with the logarithm of how likely each is."""
    if not n:
        return {}
    best = np.argpartition(-probs, min(n, len(probs) - 1))[:n]
    best = best[np.argsort(-probs[best], kind="stable")]
    found: dict[str, float] = {}
    for word, log_prob in zip(
        model.vocabulary.decode(best), np.log(probs[best]).tolist(), strict=True
    ):
        # Of two that begin alike, the likelier.
        found.setdefault("\n" if word == SENTENCE_END else word[:SHOWN], log_prob)
    return found


def _draw(probs: Probs, sampling: SamplingParams, random: np.random.Generator) -> int:
    """One of the words; at temperature zero the likeliest."""
    if sampling.temperature == 0:
        return int(probs.argmax())
    # The largest becomes zero first: nothing is too much for it, however low the temperature.
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(probs)
        shares = np.exp((logs - logs.max()) / sampling.temperature)
    if sampling.top_p < 1:
        order = np.argsort(-shares, kind="stable")
        total = np.cumsum(shares[order]) / shares.sum()
        # The first word is always among them.
        shares[order[1:][total[:-1] >= sampling.top_p]] = 0
    return int(random.choice(len(shares), p=shares / shares.sum()))


def _since_sentence(words: Sequence[str]) -> list[str]:
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


def _stops(text: str, stops: Sequence[str]) -> int | None:
    """Where the first stop word begins, if there is one."""
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return min(found) if found else None


def _safe(text: str, end: int, stops: Sequence[str]) -> bool:
    """Whether no stop word can begin before `end`, whatever comes next."""
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
            out.append(Piece(kept, piece.log_prob, piece.top))
    finish = "stop" if stopped else "length"
    if not out:
        out.append(Piece("", 0.0, {}))
    last = out[-1]
    out[-1] = Piece(last.text, last.log_prob, last.top, finish)
    yield from out
