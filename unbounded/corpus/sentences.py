"""Lines to sentences, to blocks of words that know where they come from, or to ids to train on.

What cuts a line into words, and writes words as text again, is a `Splitter`.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from unbounded.corpus.reader import Line
from unbounded.corpus.vocabulary import SENTENCE_END, Vocabulary
from unbounded.errors import SettingError, TrainingError
from unbounded.shapes import Int
from unbounded.types import Ids, Json


class Splitter(ABC):
    """A line to words and back; a word has no white space in it, the sentence end aside.

    Words may be less than what people call one: a splitter into pieces knows where each begins.
    """

    parted: bool
    """Whether its words are those that people count, and white space only parts them."""

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

    @abstractmethod
    def shown(self, word: str) -> str:
        """One word as people read it."""

    @abstractmethod
    def starts(self, words: Sequence[str]) -> Ids:
        """Where each word, as people count them, begins among these; the first is always one."""


def words_between(text: str, splitter: Splitter) -> list[str]:
    """The words of a text, each line feed in it a sentence end; the last line goes on."""
    lines = [splitter.words(line) if line else [] for line in text.split("\n")]
    return [word for line in lines for word in (*line, SENTENCE_END)][:-1]


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one line, the sentence end included, and where they stand."""

    words: tuple[str, ...]
    document: str
    line: int
    forms: tuple[str, ...] | None = None
    """Each word as it was written, with what stands before it, if somebody wants to know."""

    def after(self, count: int) -> "Sentence":
        """What follows the first words, so many."""
        if not count:
            return self
        forms = None if self.forms is None else self.forms[count:]
        return Sentence(self.words[count:], self.document, self.line, forms)


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of words; word i stands in line `line[i]` of `documents[document[i]]`."""

    words: list[str]
    documents: tuple[str, ...]
    document: Ids
    line: Ids
    forms: list[str] | None = None
    """Each word as it was written, if that is known of all."""


def read_sentences(
    lines: Iterable[Line], tokenizer: Splitter, *, forms: bool = False
) -> Iterator[Sentence]:
    """Tokenize line by line; a line without words is no sentence.

    With `forms` each word is also given as it was written; pieces of words show that themselves.

    >>> from unbounded.corpus import Tokenizer
    >>> for s in read_sentences([Line("a.txt", 1, "It rains."), Line("a.txt", 2, "")], Tokenizer()):
    ...     print(s.words, s.document, s.line)
    ('it', 'rains', '.', '</s>') a.txt 1
    """
    for line in lines:
        words = tokenizer.words(line.text)
        if words:
            written = None
            if forms and tokenizer.parted:
                written = (*surface_forms(line.text, words, tokenizer), "")
            words.append(SENTENCE_END)
            yield Sentence(tuple(words), line.document, line.number, written)


_UNWRITABLE = re.compile("[\ud800-\udfff\n]")


def surface_forms(line: str, words: Sequence[str], tokenizer: Splitter) -> list[str]:
    """Each word as it stands in its line, with the white space before it.

    >>> from unbounded.corpus import Tokenizer
    >>> line = "At 14:30  it RAINS."
    >>> surface_forms(line, Tokenizer().words(line), Tokenizer())
    ['At', ' 14', ':', '30', '  it', ' RAINS', '.']
    """
    line = _UNWRITABLE.sub("\ufffd", line)
    forms: list[str] = []
    at = 0
    for word in words:
        first = at
        while line[at : at + 1].isspace():
            at += 1
        end = at + len(word)
        if line[at:end] != word and line[at:end].lower() != word:
            break
        forms.append(line[first:end])
        at = end
    else:
        return forms
    # Letters whose lower case is longer, or characters that nobody sees.
    ends = [end for _, end in tokenizer.spans(line)]
    return [line[first:end] for first, end in zip([0, *ends[:-1]], ends, strict=True)]


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


def write_lines(
    lines: Iterable[Line],
    path: Path,
    tokenizer: Splitter,
    tokens: int | None = None,
    *,
    documents: bool = True,
) -> int:
    """Write lines to a file until they hold `tokens` words, sentence ends counted; how many do.

    With `documents`, a blank line parts them, so that they are documents again when read back.
    """
    count, document = 0, ""
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            if documents and document and line.document != document:
                file.write("\n")
            document = line.document
            file.write(line.text + "\n")
            count += len(tokenizer.words(line.text)) + 1
            if tokens is not None and count >= tokens:
                break
    return count


class _Filling:
    """A block being filled; sources are kept a run at a time and spread out at the end."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._documents: dict[str, int] = {}
        self._runs: list[tuple[int, int]] = []
        self._lengths: list[int] = []
        self._forms: list[str] | None = []

    def add(self, sentence: Sentence, start: int, stop: int) -> None:
        self.words += sentence.words[start:stop]
        number = self._documents.setdefault(sentence.document, len(self._documents))
        self._runs.append((number, sentence.line))
        self._lengths.append(stop - start)
        if sentence.forms is None:
            self._forms = None
        elif self._forms is not None:
            self._forms += sentence.forms[start:stop]

    def done(self) -> Block:
        sources = np.repeat(np.array(self._runs, dtype=np.int64), self._lengths, axis=0)
        where = tuple(self._documents), sources[:, 0], sources[:, 1]
        return Block(self.words, *where, self._forms)


VALID_TOKENS = 100_000
"""How much of the text after the training tokens is kept for validation when none is given."""


@dataclass(frozen=True)
class TrainingText:
    """Training ids, how often each word occurs in them, and validation ids (-1 for OOV words).

    Where the vocabulary was limited, the id of all rarer words is its size: `<unk>`, read by the
    network and never predicted.
    """

    vocabulary: Vocabulary
    words: Ids
    counts: Int[np.ndarray, " size"]
    valid: Int[np.ndarray, " valid"]


def training_text(
    sentences: Iterable[Sentence],
    tokens: int,
    valid: Iterable[Sentence] | None = None,
    *,
    vocabulary_size: int | None = None,
) -> TrainingText:
    """Take the first `tokens` words to train on; without `valid`, the next words validate.

    A text too short to leave any over gives its last twentieth to validation. The vocabulary is
    all words, or the most frequent `vocabulary_size` where the network must be small.
    """
    stream = chain.from_iterable(sentence.words for sentence in sentences)
    train = list(islice(stream, tokens))
    if valid is not None:
        held = list(islice(chain.from_iterable(s.words for s in valid), VALID_TOKENS))
    else:
        held = list(islice(stream, VALID_TOKENS))
        if not held:
            held = train[len(train) - len(train) // 20 :]
            train = train[: len(train) - len(held)]
    if not train or not held:
        raise TrainingError(
            f"found {len(train)} words to train on and {len(held)} to validate on; "
            f"both are needed: give more text"
        )
    counts = Counter(train)
    vocabulary = Vocabulary.from_counts(dict(counts.most_common(vocabulary_size)))
    words = vocabulary.lookup(train)
    words[words < 0] = vocabulary.base_size
    known = vocabulary.decode(np.arange(len(vocabulary)))
    return TrainingText(
        vocabulary=vocabulary,
        words=words,
        counts=np.array([counts[word] for word in known]),
        valid=vocabulary.lookup(held),
    )
