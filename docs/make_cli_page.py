"""Write docs/cli.md from the commands' own help: `python docs/make_cli_page.py`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

PAGE = Path(__file__).with_name("cli.md")
INTRO = """# The command line

Every verb has `--help` with its defaults. What is read as text may be files, folders,
`.gz .bz2 .xz .zst`, or `-` for standard input. Sizes take `k` and `M`. `--json FILE` (`-` is
standard output) exists wherever a number is printed; the tables for people go to standard
output, progress and remarks to standard error. A failure is one line that says what was found,
what was needed and what to do, with exit status 1 (2 for usage).

This page is made by `make docs` from the commands themselves, and a test keeps it fresh.
"""


def verbs() -> Iterator[tuple[str, ...]]:
    """Every command and every command below it, in the order of `--help`."""
    from unbounded.cli import main  # noqa: F401 - adds the verbs
    from unbounded.cli.main import app

    def below(words: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
        yield words
        for name, each in getattr(command, "commands", {}).items():
            yield from below((*words, name), each)

    return below((), typer.main.get_command(app))


def render() -> str:
    """The page as it should be now."""
    parts = [INTRO]
    for words in verbs():
        ran = subprocess.run(
            [sys.executable, "-m", "unbounded", *words, "--help"],
            check=True,
            capture_output=True,
            text=True,
            # Threads default to the machine's cores: the page must not depend on where it is made.
            env={**os.environ, "COLUMNS": "100", "UNBOUNDED_CORES": "2"},
        )
        shown = " ".join(("unbounded", *words, "--help"))
        parts.append(f"## `{shown}`\n\n```text\n{ran.stdout.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
