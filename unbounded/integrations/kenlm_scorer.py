"""KenLM's Python shape over a model that reads on: change the import, and a script runs.

import unbounded.integrations.kenlm_scorer as kenlm

model = kenlm.Model("my-model")
model.score("a sentence")            # log10, with both ends of the sentence
model.read("the words of today")     # what kenlm.Model does not have
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from unbounded.corpus import SENTENCE_END
from unbounded.errors import ModelError
from unbounded.experts import NGram
from unbounded.experts.ngram import ORDERS
from unbounded.lm import Pretrained, load_model
from unbounded.memory import Memory
from unbounded.memory import open as open_memory
from unbounded.model import OnlineModel
from unbounded.presets import build_preset
from unbounded.types import Ids

_PRONUNCIATION = re.compile(r"\(\d+\)$")
"""What a recognizer's list marks the second way to say a word with: `read(2)`."""


@final
@dataclass(unsafe_hash=True, repr=False)
class State:
    """Where a hypothesis stands; written by a `Scorer`, and passed back to it."""

    _words: tuple[str, ...] = ()
    _online: OnlineModel | None = field(default=None, compare=False)

    def __deepcopy__(self, memo: object) -> "State":
        # What a state stands on is never changed, only replaced.
        return copy(self)

    def write(self, online: OnlineModel, words: tuple[str, ...]) -> None:
        """Stand behind these words."""
        self._online, self._words = online, words

    def read(self) -> tuple[OnlineModel, tuple[str, ...]]:
        """The model behind the words, and the words."""
        if self._online is None:
            raise ModelError("a state that was never written; use BeginSentenceWrite first")
        return self._online, self._words


class FullScoreReturn(NamedTuple):
    """A word's log10 probability, how many words up to it were met together, and if it is new."""

    log_prob: float
    ngram_length: int
    oov: bool


@final
class Scorer:
    """A model or a memory as `kenlm.Model`; asking teaches nothing, `read` does.

    A sentence is words with spaces between them, as a recognizer has them: the model's own
    tokenizer sees to case and to `don't`, and pronunciation marks as in `read(2)` are dropped. A
    sentence begins after what was read last; without `bos` it begins out of nowhere.
    """

    def __init__(self, source: str | Path | Pretrained | Memory, *, preset: str = "full") -> None:
        """`source` is a model, a memory, or the folder of one; `preset` is for a model."""
        self.path = str(source) if isinstance(source, str | Path) else ""
        if isinstance(source, str | Path):
            source = _opened(Path(source))
        self._memory = source if isinstance(source, Memory) else None
        self._model: Pretrained = source.model if isinstance(source, Memory) else source
        if self._model.lm.closed:
            raise ModelError(
                "a transformer reads pieces, and a recognizer has words; give a recurrent model"
            )
        self._own = None if self._memory is not None else build_preset(self._model, preset)
        self._splits: dict[str, tuple[str, ...]] = {SENTENCE_END: (SENTENCE_END,)}

    @property
    def order(self) -> int:
        """The longest n-gram that is counted; the network and the memory look back further."""
        return ORDERS

    @property
    def online(self) -> OnlineModel:
        """The model as it stands, for asking."""
        if self._memory is not None:
            return self._memory.online
        assert self._own is not None
        return self._own

    def __contains__(self, word: str) -> bool:
        return all(part in self.online.vocabulary for part in self.split(word))

    def split(self, word: str) -> tuple[str, ...]:
        """A recognizer's word as the model's words; their names are made known, nothing more."""
        found = self._splits.get(word)
        if found is None:
            bare = _PRONUNCIATION.sub("", word) or word
            found = self._splits[word] = tuple(self._model.tokenizer.words(bare))
        return found

    def known(self, words: Sequence[str]) -> None:
        """Give new words a number, so that they can be spelled; a memory's are its own affair."""
        if self._own is not None:
            self._own.vocabulary.encode(words)

    def training_counts(self, size: int) -> Ids:
        """How often each of the first `size` words came in the training text, if that was kept."""
        text = self._model.text
        none = np.empty(0, np.int64)
        return np.bincount(none if text is None else text, minlength=size)[:size]

    def score(self, sentence: str, bos: bool = True, eos: bool = True) -> float:
        """The log10 probability of a sentence."""
        return sum(found.log_prob for found in self.full_scores(sentence, bos, eos))

    def perplexity(self, sentence: str) -> float:
        """That of a sentence with its end; as KenLM, words are those between spaces."""
        return float(10.0 ** (-self.score(sentence) / (len(sentence.split()) + 1)))

    def full_scores(
        self, sentence: str, bos: bool = True, eos: bool = True
    ) -> Iterator[FullScoreReturn]:
        """Each word's log10 probability, matched length and whether it is new."""
        state = State()
        (self.BeginSentenceWrite if bos else self.NullContextWrite)(state)
        for word in (*sentence.split(), *([SENTENCE_END] if eos else [])):
            after = State()
            yield self.BaseFullScore(state, word, after)
            state = after

    def BeginSentenceWrite(self, state: State) -> None:  # noqa: N802 - KenLM's names
        """Stand at the beginning of a sentence, behind what was read."""
        state.write(self.online, ("<s>",))

    def NullContextWrite(self, state: State) -> None:  # noqa: N802
        """Stand at the beginning of a text."""
        state.write(self.online.fork(reset_context=True), ())

    def BaseScore(self, in_state: State, word: str, out_state: State) -> float:  # noqa: N802
        """The log10 probability of a word behind a state; where it leads to is written."""
        return self.BaseFullScore(in_state, word, out_state).log_prob

    def BaseFullScore(  # noqa: N802
        self, in_state: State, word: str, out_state: State
    ) -> FullScoreReturn:
        """The same, with matched length and whether the word is new."""
        online, before = in_state.read()
        parts = self.split(word)
        oov = not all(part in online.vocabulary for part in parts)
        if not parts:
            out_state.write(online, before)
            return FullScoreReturn(0.0, 0, oov)
        self.known(parts)
        reading, behind = online.peek(parts)
        out_state.write(behind, (*before, *parts))
        log_prob = sum(map(math.log10, reading.prob.tolist()))
        return FullScoreReturn(log_prob, 1 if oov else _matched(behind), oov)

    def read(self, text: str) -> float:
        """Learn a text, a sentence a line; the log10 probability that it had."""
        if self._memory is not None:
            return float(-self._memory.read(text).nats.sum() / math.log(10))
        assert self._own is not None
        found = 0.0
        for line in text.splitlines():
            words = [part for word in line.split() for part in self.split(word)]
            if words:
                found += sum(map(math.log10, self._own.read([*words, SENTENCE_END]).prob.tolist()))
        return found


Model = LanguageModel = Scorer
"""As KenLM has them."""


def _matched(behind: OnlineModel) -> int:
    """How many of the last words were met together before, by the n-grams there are."""
    ngrams = [expert for expert in behind.experts.values() if isinstance(expert, NGram)]
    return max([1, *(len(ngram.context) for ngram in ngrams)])


def _opened(folder: Path, *, write: bool = False) -> Pretrained | Memory:
    if (folder / "config.json").exists() or not folder.is_dir():
        return load_model(folder)
    return open_memory(folder, mode="write" if write else "read")


@contextmanager
def opened_scorer(folder: Path, *, write: bool = False) -> Iterator[Scorer]:
    """A scorer of the model or memory in a folder; what it reads is kept by a memory to `write`."""
    source = _opened(folder, write=write)
    try:
        yield Scorer(source)
    finally:
        if isinstance(source, Memory):
            source.close()
