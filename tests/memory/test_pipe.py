"""Lines out of a pipe, as they come."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unbounded.corpus import Line
from unbounded.corpus.reader import batches
from unbounded.errors import CorpusError


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    out, into = os.pipe()
    try:
        yield out, into
    finally:
        os.close(out)


def test_whole_lines_come_at_once_and_the_rest_when_it_is_whole() -> None:
    with pipe() as (out, into):
        found = batches(out, "log")
        os.write(into, b"one\ntwo\nthr")
        assert next(found) == [Line("log", 1, "one"), Line("log", 2, "two")]
        os.write(into, "ee ü".encode()[:-1])
        os.write(into, "ü".encode()[1:] + b"\n")
        assert next(found) == [Line("log", 3, "three ü")]
        os.write(into, b"\xff last")
        os.close(into)
        assert list(found) == [[Line("log", 4, "\ufffd last")]]


def test_an_empty_pipe_has_no_lines_and_bytes_are_refused() -> None:
    with pipe() as (out, into):
        os.close(into)
        assert list(batches(out, "log")) == []
    with pipe() as (out, into):
        os.write(into, b"\x7fELF\0\0\n")
        os.close(into)
        with pytest.raises(CorpusError, match="log is not text"):
            list(batches(out, "log"))
