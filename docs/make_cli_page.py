"""Write docs/cli.md from the commands' own help: `python docs/make_cli_page.py`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

PAGE = Path(__file__).with_name("cli.md")
INTRO = """# The command line

Every verb has `--help` with its defaults. What is read as text may be files, folders,
`.gz .bz2 .xz .zst`, or `-` for standard input. Sizes take `k` and `M`. `--json FILE` (`-` is
standard output) exists wherever a number is printed; the tables for people go to standard
output, progress and remarks to standard error. A failure is one line that says what was found,
what was needed and what to do, with exit status 1; a wrong option shows the usage before that
line, with exit status 2.

This page is made by `make docs` from the commands themselves, and a test keeps it fresh.
"""


def verbs() -> Iterator[tuple[str, ...]]:
    """Every command and every command below it, in the order of `--help`."""
    import unbounded.cli  # noqa: F401  # adds the verbs
    from unbounded.cli.main import app

    def below(words: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
        yield words
        for name in command.list_commands(None) if hasattr(command, "commands") else ():
            yield from below((*words, name), command.commands[name])

    return below((), typer.main.get_command(app))


def render() -> str:
    """The page as it should be now."""
    from unbounded.cli.main import app

    parts, runner = [INTRO], CliRunner()
    for words in verbs():
        asked = [*words, "--help"]
        ran = runner.invoke(app, asked, prog_name="unbounded", env={"COLUMNS": "100"})
        shown = " ".join(("unbounded", *asked))
        parts.append(f"## `{shown}`\n\n```text\n{ran.stdout.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
