"""What cuts a line into words, and writes words as text again."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from unbounded.types import Ids, Json


class Splitter(ABC):
    """A line to words and back; a word has no white space in it, the sentence end aside.

    Words may be less than what people call one: a splitter into pieces knows where each begins.
    """

    @abstractmethod
    def words(self, line: str) -> list[str]:
        """Give the words of a line; the same line always gives the same words."""

    @abstractmethod
    def config(self) -> dict[str, Json]:
        """Describe the splitter, to be saved with a model."""

    @abstractmethod
    def text(self, words: Sequence[str]) -> str:
        """Write words as text, each sentence on its own line."""

    @abstractmethod
    def plain(self, words: Sequence[str]) -> str:
        """Write words as text to be searched in, so that nothing is between letters of a word."""

    @abstractmethod
    def pattern(self, text: str) -> str:
        """A regular expression for a text wherever `plain` has it, and not for parts of words."""

    @abstractmethod
    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where each word of a line begins and ends in it."""

    @abstractmethod
    def characters(self, words: Sequence[str]) -> int:
        """How many characters the words stand for, what parts them included."""

    parted = True
    """Whether white space only parts words, and is none."""

    def shown(self, word: str) -> str:
        """One word as people read it."""
        return word

    def starts(self, words: Sequence[str]) -> Ids:
        """Where each word, as people count them, begins among these; the first is always one."""
        return np.arange(len(words))
