"""A line to words, by the rules of the Europarl (Moses) tokenizer for English; and words to text.

Three things differ on purpose from sacremoses, which is the reference in the tests: characters that
nobody sees are dropped, marks stay on their letters, and Chinese, Japanese or Korean characters
are letters like any other.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import final

import numpy as np

from unbounded.corpus.sentences import Splitter
from unbounded.corpus.vocabulary import SENTENCE_END
from unbounded.errors import SettingError
from unbounded.types import Ids, Json

# English abbreviations whose period belongs to them, as the Europarl and Moses tools know them.
_INITIALS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
_TITLES = """
    Adj Adm Adv Asst Bart Brig Bros Capt Cmdr Col Comdr Con Cpl DR Dr Drs Ens Gen Gov Hon Hr Insp
    Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens
    Sfc Sgt Sr St Supt Surg
"""
_OTHERS = "Bldg Corp Hosp Nos Nr Op Ord Rs e.g i.e rev v vs"
_MONTHS = "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec"

ALWAYS = frozenset(f"{_INITIALS} {_TITLES} {_OTHERS} {_MONTHS}".split())
"""A period after one of these never ends a sentence."""

BEFORE_NUMBERS = frozenset(["Art", "No", "pp"])
"""A period after one of these does not end a sentence if a number follows."""

_TO_THE_LEFT = frozenset([*".,;:!?%)]}»”…°/_@", "..", "...", "...."])
_TO_THE_RIGHT = frozenset("([{«“$£€#/_@")
_QUOTES = frozenset("\"'")
# Sorted, so that of two spellings the one with more small letters wins: Mr and not MR, v and not V.
_ABBREVIATIONS = {f"{stem.lower()}.": f"{stem}." for stem in sorted(ALWAYS | BEFORE_NUMBERS)}


def detokenize(words: Iterable[str]) -> str:
    """Write words as text: punctuation attached, quotes paired, each sentence on its own line.

    A period that was parted from its word is never followed by a small letter in the text, nor is
    "Mr." ever "mr.": these capitals are put back, so that the text splits into the same words.

    >>> detokenize(["mr.", "smith", "doesn", "'t", "pay", "(", "yet", ")", ".", "why", "?", "</s>"])
    "Mr. smith doesn't pay (yet). Why?\\n"
    """
    text: list[str] = []
    open_quotes: set[str] = set()
    glue, previous = True, ""
    for word in words:
        if word == SENTENCE_END:
            text.append("\n")
            open_quotes.clear()
            glue, previous = True, ""
            continue
        # One that opens nothing: the dogs' bowl.
        owns = word == "'" and previous.endswith("s") and word not in open_quotes
        closes = word in open_quotes or owns
        attached = (
            closes
            or (word in _TO_THE_LEFT and not word == previous == ".")
            or (len(word) > 1 and word[0] == "'" and previous[-1:].isalnum())
        )
        if text and not glue and not attached:
            text.append(" ")
        text.append(_with_capital(word, previous))
        glue = word in _TO_THE_RIGHT or (word in _QUOTES and not closes)
        if word in _QUOTES and not owns:
            open_quotes ^= {word}
        previous = word
    return "".join(text)


def _with_capital(word: str, previous: str) -> str:
    if word in _ABBREVIATIONS:
        return _ABBREVIATIONS[word]
    return word[:1].upper() + word[1:] if previous in {".", "!", "?"} else word


LONGEST = 100
"""Bytes of a word in UTF-8. A longer one is cut from its start into pieces as long as that allows,
between characters; each piece is a word like any other."""

CACHE_ENTRIES = 200_000
CACHED_LENGTH = 100
"""Chunks longer than this are not worth keeping: they hardly ever come twice."""

# Characters that nobody sees: controls that are not white space, soft hyphens, zero-width and
# direction marks. Inside a word they would make a second spelling of it.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]"
)
# Half of a character, as broken JSON can hold; it has no UTF-8 form.
_SURROGATE = re.compile("[\ud800-\udfff]")

# What stands alone: all but letters, marks on letters, digits, and . ' ` , - which have rules of
# their own. Python counts superscripts and fractions as digits; the rules do not.
_SYMBOL = re.compile(
    r"[^\w\s.'`,\-\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff]|[_\u00b2\u00b3\u00b9\u00bc-\u00be]"
    r"|[\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189\u2460-\u249b\u2776-\u2793]"
)
_DOTTED = "İ".lower().encode()
_DOTS = re.compile(r"\.{2,}")
_LETTER = r"[^\W\d_]"
_NO_LETTER = r"[\W\d_]"
# The order matters, and so does that each rule consumes its neighbors: "5,,,5" and "''a" come out
# as they do in the original.
_COMMAS = (
    (re.compile(r"(\D),"), r"\1 , "),
    (re.compile(r",(\D)"), r" , \1"),
    (re.compile(r"(\d),$"), r"\1 , "),
)
_APOSTROPHES = (
    (re.compile(f"({_NO_LETTER})'({_NO_LETTER})"), r"\1 ' \2"),
    (re.compile(rf"([\W_])'({_LETTER})"), r"\1 ' \2"),
    (re.compile(f"({_LETTER})'({_NO_LETTER})"), r"\1 ' \2"),
    (re.compile(f"({_LETTER})'({_LETTER})"), r"\1 '\2"),
    (re.compile(r"(\d)'(s)"), r"\1 '\2"),
)


class WordSplitter(Splitter):
    """A splitter whose words are those that people count."""

    parted = True

    def plain(self, words: Sequence[str]) -> str:
        """Write words with a space between, as they are remembered, without sentence ends."""
        return " ".join(word for word in words if word != SENTENCE_END)

    def pattern(self, text: str) -> str:
        """A regular expression for the words of a text, one after the other."""
        words = [word for line in text.split("\n") for word in self.words(line)]
        return rf"(?<!\S){re.escape(self.plain(words))}(?!\S)" if words else ""

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where each word of a line begins and ends in it."""
        return _places(line, self.words(line))

    def characters(self, words: Sequence[str]) -> int:
        """The length of the words written out: one separator a word but the last of a sentence,
        whose separator is the sentence end. There is none after what may go on.

        >>> Tokenizer().characters(["it", "rains", "</s>", "it"]), len("it rains\\nit ")
        (12, 12)
        """
        ends = words.count(SENTENCE_END)
        parted = len(words) - sum(map(may_go_on, words))
        return sum(map(len, words)) + parted - ends * (len(SENTENCE_END) + 1)

    def shown(self, word: str) -> str:
        """The word itself."""
        return word

    def starts(self, words: Sequence[str]) -> Ids:
        """Every word begins one."""
        return np.arange(len(words))


def tokenizer_of(config: dict[str, Json]) -> WordSplitter:
    """Make the tokenizer that `config` described."""
    match config:
        case {"rules": "europarl-en", "lowercase": bool(lowercase), **rest} if not rest:
            return Tokenizer(lowercase)
        case {"rules": "none", **rest} if not rest:
            return Pretokenized()
    raise SettingError(
        f"the tokenizer is described as {config}; this version knows {Tokenizer().config()} and "
        f"{Pretokenized().config()}; upgrade unbounded or train the model again"
    )


def tokenizer_named(name: str, *, keep_case: bool = False) -> WordSplitter:
    """`europarl`, or `none` for text that is tokenized already."""
    if name == "europarl":
        return Tokenizer(lowercase=not keep_case)
    if name != "none":
        raise SettingError(f"tokenizer {name!r} is unknown; use europarl or none")
    if keep_case:
        raise SettingError("without a tokenizer words are kept as they are; leave --keep-case out")
    return Pretokenized()


@final
@dataclass(frozen=True, slots=True)
class Pretokenized(WordSplitter):
    """For text that is tokenized already: what stands between white space is a word, as it is.

    Only a sentence end that is typed is cut, so that no text can spell it, and words that are too
    long.

    >>> Pretokenized().words("the N <unk> fell </s>")
    ['the', 'N', '<unk>', 'fell', '<', '/s>']
    """

    def words(self, line: str) -> list[str]:
        """Give the words of a line; the same line always gives the same words."""
        words: list[str] = []
        for word in _SURROGATE.sub("\ufffd", line).split():
            if word == SENTENCE_END:
                words += (word[0], word[1:])
            elif 4 * len(word) > LONGEST:
                words += _pieces(word)
            else:
                words.append(word)
        return words

    def config(self) -> dict[str, Json]:
        """Describe the tokenizer, to be saved with a model."""
        return {"rules": "none"}

    def text(self, words: Sequence[str]) -> str:
        """Write words with a space between, each sentence on its own line."""
        lines: list[list[str]] = [[]]
        for word in words:
            if word == SENTENCE_END:
                lines.append([])
            else:
                lines[-1].append(word)
        return "\n".join(map(" ".join, lines))


@final
@dataclass(frozen=True, slots=True)
class Tokenizer(WordSplitter):
    """Splits a line into words, lower-cased unless told otherwise; no word has white space in it.

    >>> Tokenizer().words("Mr. Smith doesn't pay $1,000.50, does he?")
    ['mr.', 'smith', 'doesn', "'t", 'pay', '$', '1,000.50', ',', 'does', 'he', '?']
    >>> Tokenizer(lowercase=False).words("</s> is split...")
    ['<', '/', 's', '>', 'is', 'split', '...']
    >>> [len(word) for word in Tokenizer().words("a" * 250)]
    [100, 100, 50]
    """

    lowercase: bool = True
    # From what stands between two spaces to its words. A text repeats itself so much that the rules
    # hardly ever run. Chunks whose words depend on their neighbors are not in it.
    _cache: dict[str, tuple[str, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def config(self) -> dict[str, Json]:
        """Describe the tokenizer, to be saved with a model."""
        return {"rules": "europarl-en", "lowercase": self.lowercase}

    def text(self, words: Sequence[str]) -> str:
        """Write words as text that is pleasant to read."""
        return detokenize(words)

    def words(self, line: str) -> list[str]:
        """Give the words of a line; the same line always gives the same words."""
        if not line.isprintable():
            line = _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", line))
        chunks = line.split()
        found = list(map(self._cache.get, chunks))
        for at, words in enumerate(found):
            if words is None:
                found[at] = self._look_up(chunks, at)
        return list(chain.from_iterable(found))  # type: ignore[arg-type]

    def _look_up(self, chunks: list[str], at: int) -> tuple[str, ...]:
        """Split a chunk that is not in the cache under its bare name."""
        chunk = chunks[at]
        split = partial(_split, chunk, lowercase=self.lowercase)
        if len(chunk) == 1 or (chunk[0] not in "'," and chunk[-1] not in "'."):
            return self._keep(chunk, split(first=False, following=" "))
        first = at == 0
        following = chunks[at + 1][0] if at + 1 < len(chunks) else ""
        # A name with a space in it cannot be mistaken for a chunk.
        name = f"{chunk} {first:d}{_kind(following)}"
        return self._cache.get(name) or self._keep(name, split(first=first, following=following))

    def _keep(self, name: str, words: tuple[str, ...]) -> tuple[str, ...]:
        # No character has more than four bytes.
        if 4 * max(map(len, words), default=0) > LONGEST:
            words = tuple(chain.from_iterable(map(_pieces, words)))
        if len(name) <= CACHED_LENGTH:
            if len(self._cache) >= CACHE_ENTRIES:
                self._cache.clear()
            self._cache[name] = words
        return words


def may_go_on(word: str) -> bool:
    """Whether a word is so long that it may be a piece of a longer one that the next goes on with.

    >>> may_go_on("a" * 95), may_go_on("李" * 33)
    (False, True)
    """
    return 4 * len(word) >= LONGEST - 4 and len(word.encode()) >= LONGEST - 4


def _pieces(word: str) -> Iterator[str]:
    """A word, cut where it is too long."""
    data, start = word.encode(), 0
    while len(data) - start > LONGEST:
        end = start + LONGEST
        # Neither within a character nor within the two that one İ becomes.
        while data[end] & 0xC0 == 0x80 or data[end - 1 : end + 2] == _DOTTED:
            end -= 1
        yield data[start:end].decode()
        start = end
    yield data[start:].decode()


def _kind(following: str) -> str:
    """All that a chunk may know of the next one: none, small letter, digit, or something else."""
    if not following:
        return "-"
    if following.islower():
        return "a"
    return "0" if following in "0123456789" else "A"


def _split(chunk: str, *, first: bool, following: str, lowercase: bool) -> tuple[str, ...]:
    """Split what stands between two spaces; `following` is the first letter after it, if any."""
    if chunk.isalpha():
        return (chunk.lower() if lowercase else chunk,)
    # The rules look one character to each side; at the ends of a line there is none to be seen.
    text = f"{'' if first else ' '}{chunk}{' ' if following else ''}"
    text = _SYMBOL.sub(r" \g<0> ", text)
    text = _DOTS.sub(r" \g<0> ", text)
    for pattern, spaced in _COMMAS if "," in text else ():
        text = pattern.sub(spaced, text)
    for pattern, spaced in _APOSTROPHES if "'" in text else ():
        text = pattern.sub(spaced, text)
    words = text.split()
    after = [word[0] for word in words[1:]] + [following]
    text = " ".join(
        _part_period(word, then) if word[-1] == "." else word
        for word, then in zip(words, after, strict=True)
    )
    if not following and text.endswith(".'"):
        text = text[:-2] + " . '"
    return tuple((text.lower() if lowercase else text).split())


def _part_period(word: str, following: str) -> str:
    """Part a word from the period at its end, unless that belongs to it or ends no sentence."""
    stem = word[:-1]
    if not stem or stem[-1] == ".":
        return word
    belongs = (
        ("." in stem and any(map(str.isalpha, stem)))
        or stem in ALWAYS
        or following.islower()
        or (stem in BEFORE_NUMBERS and following != "" and following in "0123456789")
    )
    return word if belongs else stem + " ."


def _places(line: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word is, letter by letter; what the tokenizer dropped is passed over."""
    out: list[tuple[int, int]] = []
    at = 0
    for word in words:
        while at < len(line) and line[at].isspace():
            at += 1
        start, left, seen = at, word, False
        while left and at < len(line):
            letter = line[at]
            # Lower case can be longer than the letter was.
            for form in (letter, letter.lower()):
                if left.startswith(form):
                    left, seen = left[len(form) :], True
                    break
            else:
                # Half a character; neither white space nor what was dropped stands for one.
                if left[0] == "\ufffd" and not (letter.isspace() or _INVISIBLE.match(letter)):
                    left, seen = left[1:], True
                elif not seen:
                    start = at + 1
            at += 1
        out.append((min(start, at), at))
    return out
