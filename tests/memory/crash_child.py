"""A process that is ready to be killed: it forks children that read, forget and compact for ever.

The parent writes `FOLDER SEED` a line; a fork of this process, in which everything is imported and
compiled already, opens the memory there and lives. It says what it begins and what is done, a line
each, and the first line is its process number.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

from tests.memory.texts import open_toy, some_text
from unbounded.memory import Memory, checkpointing, local

KINDS = ("read", "read", "read", "long", "snapshot", "forget", "undo", "compact")


def text_of(document: str) -> str:
    """The text of a document; long ones are several blocks."""
    _, number, kind = document.split("-")
    return some_text(25 if kind == "long" else 3, int(number))


def say(what: str, **more: object) -> None:
    os.write(1, json.dumps({"what": what, **more}).encode() + b"\n")


def live(folder: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    local.BLOCK, checkpointing.DELTA_WORDS, checkpointing.SNAPSHOT_WORDS = 64, 80, 300
    with open_toy(folder) as memory:
        say("open")
        done: list[tuple[str, str]] = []
        for number in range(1_000):
            kind = str(random.choice(KINDS))
            document = f"d{seed}-{seed * 1_000 + number}-{kind}"
            if kind == "forget":
                there = sorted(one.name for one in memory.documents())
                if not there:
                    continue
                document = str(random.choice(there))
            verb = ""
            if kind == "undo":
                if not done:
                    continue
                verb, document = done.pop()
            say("begin", kind=kind, document=document, verb=verb)
            act(memory, kind, document)
            if kind in ("read", "long", "forget"):
                done.append(("forget" if kind == "forget" else "read", document))
            elif kind == "compact":
                done.clear()
            say("done")


def act(memory: Memory, kind: str, document: str) -> None:
    if kind in ("read", "long"):
        memory.read(text_of(document), document)
    elif kind == "forget":
        memory.forget(document=document)
    elif kind == "snapshot":
        memory.backend.snapshot()
    elif kind == "undo":
        memory.undo()
    else:
        memory.compact()


def main() -> None:
    checkpointing.FEWEST_WORDS = 0
    # Once with nobody looking, so that a child need not compile.
    warm = Path(sys.argv[1])
    with open_toy(warm) as memory:
        for kind in ("read", "long", "snapshot", "forget", "compact"):
            act(memory, kind, "w-0-read")
            memory.read("known1", "w-0-read")
    say("ready")
    for line in sys.stdin:
        folder, seed = line.split()
        child = os.fork()
        if child == 0:
            say("child", pid=os.getpid())
            try:
                live(Path(folder), int(seed))
            except BaseException as error:
                say("failed", error=repr(error))
            os._exit(0)
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    main()
