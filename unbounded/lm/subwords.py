"""The pieces of a subword vocabulary as words: names without white space, and text again."""

import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from unbounded.corpus import SENTENCE_END, Splitter, Vocabulary, words_between
from unbounded.errors import CorpusError, ModelError
from unbounded.types import Ids, Json

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"
"""What SentencePiece writes for a space."""


def _byte_letters() -> dict[str, int]:
    """The letter that byte-level vocabularies write for each byte: itself if it can be seen."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + i): b for i, b in enumerate(hidden)}


_LETTERS = _byte_letters()


@final
class PieceTokenizer(Splitter):
    """A tokenizer of the `transformers` kind as a splitter: its pieces, by name, are the words.

    A line's end is a piece of its own, and is called as every sentence end is. A line is cut on its
    own, so its pieces never depend on how a text is cut into blocks.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        """Of a network that knows `size` pieces."""
        self.tokenizer = tokenizer
        names = tokenizer.convert_ids_to_tokens(list(range(min(len(tokenizer), size))))
        self.special: list[str] = list(tokenizer.all_special_tokens)
        """Pieces that stand for no text, as a template writes them."""
        special = {*self.special, *tokenizer.get_added_vocab()}
        levels = "Ġ" in names or "Ċ" in names
        self.end = self._line_end(size)
        self._names = _unique([*names, *([None] * (size - len(names)))], self.end)
        spelled = (*names, *([""] * (size - len(names))))
        self._bytes = [_spelled(name, levels and name not in special) for name in spelled]
        self._bytes[self.end] = b"\n"
        self._ids = {name: number for number, name in enumerate(self._names)}
        # Characters begin at every byte but those that go on with one.
        starts = [sum(byte & 0xC0 != 0x80 for byte in piece) for piece in self._bytes]
        self._lengths = np.array(starts)
        fast = getattr(tokenizer, "backend_tokenizer", None)
        if fast is not None:
            # A text that speaks of "<|endoftext|>" does not end there.
            fast.encode_special_tokens = True
        self._fast = fast

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names, in the order of the network's ids."""
        return Vocabulary(self._names)

    def ids(self, line: str) -> list[int]:
        """The network's ids for a line, without its end."""
        if self._fast is not None:
            found: list[int] = self._fast.encode(line, add_special_tokens=False).ids
        else:
            # Only where it matters: other pieces that were added later are found as before.
            speaks = any(token in line for token in self.special)
            options = {"split_special_tokens": True} if speaks else {}
            found = self.tokenizer.encode(line, add_special_tokens=False, **options)
        return found

    def named(self, special: str) -> str:
        """What a special piece is called among the words."""
        return self.vocabulary.decode([self.tokenizer.convert_tokens_to_ids(special)])[0]

    def words(self, line: str) -> list[str]:
        """Give the pieces of a line by name."""
        try:
            return [self._names[number] for number in self.ids(line)]
        except IndexError:
            raise ModelError(
                f"the tokenizer makes pieces that the network of {len(self._names):,} does not "
                "know; give the tokenizer that belongs to it"
            ) from None

    def config(self) -> dict[str, Json]:
        """Describe the tokenizer by the sum of its pieces and of how it cuts a sample."""
        names = "\n".join(self._names).encode()
        cut = np.array(self.ids(_SAMPLE), np.int64).tobytes()
        return {"rules": "pieces", "names": zlib.crc32(names), "sample": zlib.crc32(cut)}

    def text(self, words: Sequence[str]) -> str:
        """Write pieces as text; half a character at either end is left out."""
        written = b"".join(self._spelling(word) for word in words)
        lines = written.decode(errors="ignore").split("\n")
        return "\n".join(line.removeprefix(" ") for line in lines)

    def plain(self, words: Sequence[str]) -> str:
        """Write pieces as text."""
        return self.text(words)

    def pattern(self, text: str) -> str:
        """A regular expression for a text, each line feed in it an end of a line or of all."""
        text = text.strip()
        return rf"(?<!\w){re.escape(text)}(?!\w)" if text else ""

    parted = False

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where each piece of a line begins and ends in it; those of one character share it."""
        if self._fast is not None:
            found: list[tuple[int, int]] = self._fast.encode(line, add_special_tokens=False).offsets
            return found
        ends = np.minimum(np.cumsum(self._lengths[self.ids(line)]), len(line)).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    def characters(self, words: Sequence[str]) -> int:
        """How many characters begin in these pieces."""
        return int(self._lengths[[self._ids[word] for word in words]].sum())

    def shown(self, word: str) -> str:
        """A piece as it stands in a text; what goes on with a word says so.

        A sentence end is called what it is called everywhere.
        """
        if word == SENTENCE_END:
            return word
        spelled = self._spelling(word)
        written = spelled.decode(errors="replace")
        begins = spelled[:1].isspace() or not written[:1].isalnum()
        return (written.strip() or "␣") if begins else f"…{written}"

    def starts(self, words: Sequence[str]) -> Ids:
        """Where a word begins: after white space, and between letters and signs."""
        found, before = [], ""
        for place, word in enumerate(words):
            written = self._spelling(word).decode(errors="replace")
            here, last = written[:1], before[-1:]
            if (
                place == 0
                or not last
                or here.isspace()
                or last.isspace()
                or _wordy(here) != _wordy(last)
                or not _wordy(here)
            ) and not (last == " " and len(before) == 1 and not here.isspace()):
                found.append(place)
            before = written or before
        return np.array(found, np.int64)

    def _spelling(self, word: str) -> bytes:
        try:
            return self._bytes[self._ids[word]]
        except KeyError:
            raise CorpusError(
                f"{word!r} is no piece of this model; give words that its tokenizer made"
            ) from None

    def _line_end(self, size: int) -> int:
        """The piece that is a line feed; without one, whatever ends a text."""
        found = self.tokenizer.encode("\n", add_special_tokens=False)
        if found and self.tokenizer.decode(found[-1:]) == "\n" and found[-1] < size:
            return int(found[-1])
        end = self.tokenizer.eos_token_id
        if end is None or end >= size:
            raise ModelError(
                "the tokenizer has no piece for the end of a line and none for that of a text; "
                "give one that has"
            )
        return int(end)


def _wordy(letter: str) -> bool:
    """Part of a word; half a character is taken for a letter."""
    return letter.isalnum() or letter in "_\ufffd"


def _spelled(name: str | None, byte_level: bool) -> bytes:
    """The bytes that a piece stands for."""
    if name is None:
        return b""
    if byte_level and all(letter in _LETTERS for letter in name):
        return bytes(_LETTERS[letter] for letter in name)
    if match := _BYTE.fullmatch(name):
        return bytes([int(match[1], 16)])
    return name.replace(_SPACE, " ").encode(errors="replace")


def _unique(pieces: Sequence[str | None], end: int) -> list[str]:
    """Names that a vocabulary can hold: no white space, no two alike, the line's end by its own."""
    taken: set[str] = {SENTENCE_END}
    names = []
    for number, piece in enumerate(pieces):
        name = piece or f"<piece {number}>".replace(" ", ":")
        good = name.split() == [name] and not any("\ud800" <= x <= "\udfff" for x in name)
        if number == end:
            name = SENTENCE_END
        elif not good or name in taken:
            name = f"<piece:{number}>"
        taken.add(name)
        names.append(name)
    return names


_SAMPLE = "Mr. O'Neill's 1,024 naïve zebras -- don't; they (re)write 漢字 & 🦜s!  ok"


NONE = (
    "this model has no chat template, which a conversation needs; ask for a completion of a text "
    "(/v1/completions), or take a model of transformers that was trained to chat"
)


def chat_words(splitter: Splitter, messages: Sequence[Mapping[str, str]]) -> list[str]:
    """The words after which the reply comes; each message has a `role` and a `content`.

    The template is rendered by transformers, in its sandbox. What a message says is text: the name
    of a special piece in it, such as "<|im_end|>", ends nothing.
    """
    template = getattr(getattr(splitter, "tokenizer", None), "chat_template", None)
    if not isinstance(splitter, PieceTokenizer) or not template:
        raise ModelError(NONE)
    # Nobody can write what stands for a message: the template sees that in its place.
    stands = f"⟦{secrets.token_hex(8)}:{{}}⟧"
    shown = [{**one, "content": stands.format(i)} for i, one in enumerate(messages)]
    try:
        text = splitter.tokenizer.apply_chat_template(
            shown, tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # Whatever a template does, or refuses.
        raise CorpusError(
            "the model's chat template does not take these messages; give roles system, user and "
            "assistant by turns, the last of them user"
        ) from error
    special = sorted(splitter.special, key=len, reverse=True)
    cut = "|".join(map(re.escape, special)) or "$^"
    words: list[str] = []
    for number, part in enumerate(re.split(stands.format("([0-9]+)"), text)):
        if number % 2:
            words += words_between(messages[int(part)]["content"], splitter)
            continue
        for place, piece in enumerate(re.split(f"({cut})", part)):
            words += [splitter.named(piece)] if place % 2 else words_between(piece, splitter)
    return words


def chat_ends(splitter: Splitter) -> tuple[str, ...]:
    """What ends a reply: any special piece, as it is written."""
    return tuple(splitter.special) if isinstance(splitter, PieceTokenizer) else ()
