"""Words and where they stand in the text that they were made of."""

from dataclasses import dataclass
from itertools import pairwise

from unbounded.corpus import SENTENCE_END, Splitter


@dataclass(frozen=True)
class Placed:
    """The words of a text, and the first character of each and the one after its last."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def pieces(self) -> list[str]:
        """The text cut behind each word; put together again it is the text."""
        cuts = [0, *self.ends[:-1], len(self.text)] if self.words else []
        return [self.text[start:end] for start, end in pairwise(cuts)]


def place(text: str, tokenizer: Splitter, *, ended: bool) -> Placed:
    """Split a text into words, a sentence a line, and find each again.

    `ended` says whether the last line has ended even if no line feed says so.

    >>> from unbounded.corpus import Tokenizer
    >>> placed = place("The cat.\\nIt", Tokenizer(), ended=False)
    >>> list(zip(placed.words, placed.starts, placed.ends))[2:]
    [('.', 7, 8), ('</s>', 8, 9), ('it', 9, 11)]
    >>> placed.pieces()
    ['The', ' cat', '.', '\\n', 'It']
    """
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    lines, at = text.split("\n"), 0
    for number, line in enumerate(lines):
        found = tokenizer.words(line)
        for start, end in tokenizer.spans(line):
            starts.append(at + start)
            ends.append(at + end)
        words += found
        last = number == len(lines) - 1
        if found and (ended or not last):
            words.append(SENTENCE_END)
            starts.append(at + len(line))
            ends.append(at + len(line) + (0 if last else 1))
        at += len(line) + 1
    return Placed(text, words, starts, ends)
