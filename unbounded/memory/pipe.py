"""Lines out of a pipe as they come: nobody waits for a block to be full."""

import codecs
import os
from collections.abc import Iterator

from unbounded.corpus import Line
from unbounded.corpus.plain_text import refuse_binary

AT_ONCE = 1 << 16


def batches(file: int, document: str) -> Iterator[list[Line]]:
    """The lines that have come since the last batch, at least one; ends with the pipe.

    Broken UTF-8 is read as U+FFFD. A last line without an end is a line.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest, number = "", 1
    while True:
        data = os.read(file, AT_ONCE)
        text = decoder.decode(data, final=not data)
        refuse_binary(document, text)
        *whole, rest = (rest + text).split("\n")
        if not data and rest:
            whole.append(rest)
        if whole:
            yield [Line(document, number + i, text) for i, text in enumerate(whole)]
            number += len(whole)
        if not data:
            return
