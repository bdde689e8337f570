"""Lines to sentences to blocks of words that know where they come from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from unbounded.corpus.reader import Line
from unbounded.corpus.splitter import Splitter
from unbounded.corpus.vocabulary import SENTENCE_END
from unbounded.errors import SettingError
from unbounded.types import Ids


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one line, the sentence end included, and where they stand."""

    words: tuple[str, ...]
    document: str
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of words; word i stands in line `line[i]` of `documents[document[i]]`."""

    words: list[str]
    documents: tuple[str, ...]
    document: Ids
    line: Ids


def read_sentences(lines: Iterable[Line], tokenizer: Splitter) -> Iterator[Sentence]:
    """Tokenize line by line; a line without words is no sentence.

    >>> from unbounded.corpus import Tokenizer
    >>> for s in read_sentences([Line("a.txt", 1, "It rains."), Line("a.txt", 2, "")], Tokenizer()):
    ...     print(s.words, s.document, s.line)
    ('it', 'rains', '.', '</s>') a.txt 1
    """
    for line in lines:
        words = tokenizer.words(line.text)
        if words:
            words.append(SENTENCE_END)
            yield Sentence(tuple(words), line.document, line.number)


def blocks(sentences: Iterable[Sentence], size: int, tokens: int | None = None) -> Iterator[Block]:
    """Cut the stream into blocks of `size` words, the last perhaps shorter; `tokens` words in all.

    >>> stream = [Sentence(("a", "b", "</s>"), "x", 1), Sentence(("c", "</s>"), "y", 7)]
    >>> for block in blocks(stream, 4):
    ...     print(block.words, block.documents, block.document.tolist(), block.line.tolist())
    ['a', 'b', '</s>', 'c'] ('x', 'y') [0, 0, 0, 1] [1, 1, 1, 7]
    ['</s>'] ('y',) [0] [7]
    """
    if size < 1:
        raise SettingError(f"a block of {size} words was asked for; use a size of 1 or more")
    left = np.inf if tokens is None else tokens
    block = _Filling()
    for sentence in sentences:
        start = 0
        while start < len(sentence.words) and left > 0:
            stop = min(start + size - len(block.words), len(sentence.words), start + left)
            block.add(sentence, start, int(stop))
            left -= int(stop) - start
            start = int(stop)
            if len(block.words) == size:
                yield block.done()
                block = _Filling()
        if left <= 0:
            break
    if block.words:
        yield block.done()


class _Filling:
    """A block being filled; sources are kept a run at a time and spread out at the end."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._documents: dict[str, int] = {}
        self._runs: list[tuple[int, int]] = []
        self._lengths: list[int] = []

    def add(self, sentence: Sentence, start: int, stop: int) -> None:
        self.words += sentence.words[start:stop]
        number = self._documents.setdefault(sentence.document, len(self._documents))
        self._runs.append((number, sentence.line))
        self._lengths.append(stop - start)

    def done(self) -> Block:
        sources = np.repeat(np.array(self._runs, dtype=np.int64), self._lengths, axis=0)
        return Block(self.words, tuple(self._documents), sources[:, 0], sources[:, 1])
