"""Write docs/cli.md from the commands' own help: `python docs/make_cli_page.py`."""

import os
import subprocess
import sys
from pathlib import Path

VERBS = ["", "demo", "train", "evaluate", "reproduce", "bench"]
VERBS += ["read", "predict", "score", "complete", "memory", "memory stats", "memory forget"]
VERBS += ["memory check", "memory compact", "memory export", "memory move"]
VERBS += ["serve", "keys", "keys add", "keys list", "keys remove"]
VERBS += ["bench read", "bench search", "bench train", "bench cluster"]
PAGE = Path(__file__).with_name("cli.md")
INTRO = """# The command line

Every verb has `--help` with its defaults. What is read as text may be files, folders,
`.gz .bz2 .xz .zst`, or `-` for standard input. Sizes take `k` and `M`. `--json FILE` (`-` is
standard output) exists wherever a number is printed; the tables for people go to standard
output, progress and remarks to standard error. A failure is one line that says what was found,
what was needed and what to do, with exit status 1 (2 for usage).

This page is made by `make docs` from the commands themselves, and a test keeps it fresh.
"""


def render() -> str:
    """The page as it should be now."""
    parts = [INTRO]
    for verb in VERBS:
        shown = f"unbounded {verb} --help".replace("  ", " ")
        ran = subprocess.run(
            [sys.executable, "-m", "unbounded", *verb.split(), "--help"],
            check=True,
            capture_output=True,
            text=True,
            # Threads default to the machine's cores: the page must not depend on where it is made.
            env={**os.environ, "COLUMNS": "100", "UNBOUNDED_CORES": "2"},
        )
        parts.append(f"## `{shown}`\n\n```text\n{ran.stdout.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
