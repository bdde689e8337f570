"""The command line as a person runs it, in this process: no new interpreter for each command."""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from unbounded.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def unbounded(*words: object, stdin: str = "") -> Ran:
    """Run a command with a text on standard input."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        _given(stdin),
        patch.object(sys, "argv", ["unbounded", *map(str, words)]),
        patch.dict(os.environ, {"COLUMNS": "200"}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())


def process(*words: object, stdin: str = "") -> Ran:
    """The same in a process of its own, for what a process is the point of."""
    ran = subprocess.run(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def said(*words: object, stdin: str = "") -> str:
    """What a command that succeeds prints."""
    ran = unbounded(*words, stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def assert_fails(
    words: Sequence[object],
    *parts: str,
    status: int = 1,
    stdin: str = "",
    run: Callable[..., Ran] = unbounded,
) -> None:
    """A failure is one line that says all these, and no traceback."""
    ran = run(*words, stdin=stdin)
    assert ran.returncode == status, (words, ran)
    assert "Traceback" not in ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line]
    if status == 1:
        assert len(lines) == 1, (words, ran.stderr)
        assert lines[0].startswith("Error: ")
    for part in parts:
        assert part in ran.stderr, (words, ran.stderr)


@contextmanager
def _given(text: str) -> Iterator[None]:
    """A text on standard input, for who reads its file and for who reads its descriptor."""
    before = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
        try:
            with (
                open(0, encoding="utf-8", closefd=False) as stdin,
                patch.object(sys, "stdin", stdin),
            ):
                yield
        finally:
            os.dup2(before, 0)
            os.close(before)
