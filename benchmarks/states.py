"""The words of a text, read once and in order, and the states before them, kept in files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import final

import numpy as np

from unbounded.corpus import Line, read_sentences
from unbounded.demo import FAR, NEAR
from unbounded.errors import SettingError
from unbounded.lm import LanguageModel, Pretrained
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs, State

FEWEST = 1_000
"""Stock faiss cannot be trained on much less."""

CHUNK = 65_536
"""States that are read back at once."""


@dataclass(frozen=True)
class Joined:
    """Texts one after another, which can be gone through again if each of them can."""

    parts: Sequence[Iterable[Line]]

    def __iter__(self) -> Iterator[Line]:
        return chain.from_iterable(self.parts)


DEMO = Joined((NEAR, FAR))
"""The built-in texts that the demonstration's network was not trained on: 3.3 M words."""


def words_of(model: Pretrained, text: Iterable[Line]) -> Iterator[str]:
    """The words of a text, as the model's tokenizer makes them."""
    return chain.from_iterable(s.words for s in read_sentences(text, model.tokenizer))


def full_size(model: Pretrained, text: Iterable[Line], needed: int) -> int:
    """The network's words and those of the text's first `needed` words; refused if it has less."""
    met, counted = model.vocabulary.copy(), 0
    words = islice(words_of(model, text), needed)
    while some := list(islice(words, 8192)):
        met.encode(some)
        counted += len(some)
    if counted < needed:
        raise SettingError(
            f"the text has {counted:,} words and {needed:,} are needed, for none is read twice; "
            "give more text (--text), or fewer --entries"
        )
    return len(met)


def check_marks(marks: Sequence[int], room: Sequence[int]) -> None:
    """Refuse marks that are too small, or so near that the room before them overlaps."""
    if min(marks) < FEWEST:
        raise SettingError(f"{min(marks):,} entries were asked for; the fewest are {FEWEST:,}")
    for last, mark, before in zip(marks, marks[1:], room[1:], strict=False):
        if mark - before < last:
            raise SettingError(
                f"{last:,} and {mark:,} entries are too near each other; "
                f"leave {before:,} words between them"
            )


@final
class Scratch:
    """Keys as 16-bit floats and their words, appended as they are read, and read back by range.

    Plain writes and reads, not a memory map: mapped pages would count as the memory of the one
    who is measured. Whoever opens the folder again reads what was written by then.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self._keys, self._words, self._width = folder / "keys", folder / "words", width

    def append(self, keys: Hidden, words: Ids) -> None:
        """Add pairs to the files."""
        for path, rows in ((self._keys, keys.astype("f2")), (self._words, words.astype("i4"))):
            with path.open("ab") as file:
                file.write(rows.tobytes())

    def keys(self, start: int, stop: int) -> Hidden:
        """The keys from `start` to before `stop`."""
        width = self._width
        rows = np.fromfile(self._keys, np.float16, (stop - start) * width, offset=start * width * 2)
        return rows.reshape(-1, width).astype(np.float32)

    def words(self, stop: int) -> Ids:
        """The first `stop` words."""
        return np.fromfile(self._words, np.int32, stop)

    def chunks(self, start: int, stop: int, size: int = CHUNK) -> Iterator[Hidden]:
        """The keys from `start` to before `stop`, some at a time."""
        for begin in range(start, stop, size):
            yield self.keys(begin, min(begin + size, stop))


@final
class Watched(LanguageModel):
    """A network whose last states can be seen from outside."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm, self.base_size, self.width = lm, lm.base_size, lm.width
        self.now, self.state = lm.start()
        self._before, self._after = self.now, self.now

    @property
    def hidden(self) -> Hidden:
        """The states before each of the words last read at once."""
        return np.concatenate([self._before, self._after[:-1]])

    def peek(self, ids: Ids) -> Hidden:
        """The states before each of these words if they came next; changes nothing."""
        return np.concatenate([self.now, self.lm.advance(self.state, ids)[0][:-1]])

    def start(self) -> tuple[Hidden, State]:
        """The network's."""
        return self.lm.start()

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The network's, and remembered."""
        self._before = self.now
        self._after, self.state = self.lm.advance(state, words)
        self.now = self._after[-1:]
        return self._after, self.state

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The network's."""
        return self.lm.prob(hidden, words)

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The network's."""
        return self.lm.dense(hidden)
