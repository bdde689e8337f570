"""How words were written, in half a byte each: their capitals, and what stands before them.

payload  words u32 | codes, two a byte, the first in the low half | forms that no code stands
         for, in UTF-8, one a line
code     0 the word itself · 2 its first letter large · 4 all letters large · 6 nothing · 7 the
         next of those forms; 1, 3 and 5 the same with a space before
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np

_COUNT = struct.Struct("<I")
_NOTHING, _OTHER = 6, 7


def forms_payload(words: Sequence[str], forms: Sequence[str]) -> bytes:
    """Forms of words, as bytes; a form has no line end in it.

    >>> data = forms_payload(["it", "rains", ".", "</s>"], ["It", " rains", "\\t.", ""])
    >>> len(data), read_forms(["it", "rains", ".", "</s>"], memoryview(data))
    (8, ['It', ' rains', '\\t.', ''])
    """
    codes = np.zeros(len(words) + len(words) % 2, np.uint8)
    others: list[str] = []
    for at, (word, form) in enumerate(zip(words, forms, strict=True)):
        space = form[:1] == " "
        bare = form[1:] if space else form
        if bare == word:
            codes[at] = space
        elif bare == word[:1].upper() + word[1:]:
            codes[at] = 2 + space
        elif bare == word.upper():
            codes[at] = 4 + space
        elif not form:
            codes[at] = _NOTHING
        else:
            codes[at] = _OTHER
            others.append(form)
    packed = (codes[::2] | codes[1::2] << 4).tobytes()
    return _COUNT.pack(len(words)) + packed + "\n".join(others).encode()


def read_forms(words: Sequence[str], payload: memoryview) -> list[str]:
    """The forms of these words that the bytes hold; `ValueError` if they are of others."""
    (count,) = _COUNT.unpack_from(payload)
    if count != len(words):
        raise ValueError(f"forms of {count} words, for {len(words)}")
    packed = np.frombuffer(payload, np.uint8, (count + 1) // 2, _COUNT.size)
    codes = np.stack([packed & 15, packed >> 4], axis=1).ravel()[:count].tolist()
    others = iter(str(payload[_COUNT.size + len(packed) :], "utf-8").split("\n"))
    return [_form(word, code, others) for word, code in zip(words, codes, strict=True)]


def _form(word: str, code: int, others: Iterator[str]) -> str:
    if code >= _NOTHING:
        return "" if code == _NOTHING else next(others)
    bare = (word, word[:1].upper() + word[1:], word.upper())[code // 2]
    return f" {bare}" if code % 2 else bare
