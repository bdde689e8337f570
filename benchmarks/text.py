"""The text that is read, once and in order: its words are counted first, and never repeated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from unbounded.corpus import Line, read_sentences
from unbounded.demo import FAR, NEAR
from unbounded.errors import SettingError
from unbounded.lm import Pretrained

FEWEST = 1_000
"""Stock faiss cannot be trained on much less."""


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
