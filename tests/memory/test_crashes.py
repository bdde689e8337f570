"""Killed at random, again and again: nothing acknowledged is lost, nothing forgotten comes back.

Each time a process that reads, sets aside, forgets and compacts is killed; then the memory is
opened, checked against its journal to the bit, and compared with what was acknowledged.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Torture
from tests.memory.crash_child import text_of
from tests.memory.texts import open_toy, store_of, toy_model
from unbounded.corpus import SENTENCE_END
from unbounded.memory import Memory

ROOT = Path(__file__).parents[2]
KILLS = 5
"""Kills that each memory has to bear."""


def words_of(document: str) -> list[str]:
    """All words of a document."""
    tokenizer = toy_model().tokenizer
    lines = text_of(document).split("\n")
    return [word for line in lines for word in [*tokenizer.words(line), SENTENCE_END]]


class Life:
    """What one memory must have, by document, and what the last kill left in the balance."""

    def __init__(self) -> None:
        self.must: dict[str, list[str]] = {}
        self.reading: str | None = None
        self.forgetting: str | None = None
        self.undoing: tuple[str, list[str]] | None = None
        self.had: dict[str, list[str]] = {}

    def hear(self, said: list[dict[str, Any]]) -> str:
        """Take in what a child said; the kind of thing during which it was killed."""
        during, document, back = "open", "", list[str]()
        for line in said:
            assert line["what"] != "failed", line
            if line["what"] == "begin":
                during, document = line["kind"], line["document"]
                back = self.had.get(document, []) if line["verb"] == "forget" else []
            elif line["what"] == "done":
                if during in ("read", "long"):
                    self.must[document] = words_of(document)
                elif during == "forget":
                    self.had[document], self.must[document] = self.must[document], []
                elif during == "undo":
                    self.must[document] = back
                during = "between"
        self.reading = document if during in ("read", "long") else None
        self.forgetting = document if during == "forget" else None
        self.undoing = (document, back) if during == "undo" else None
        return during

    def compare(self, memory: Memory) -> None:
        """Every document is there as it was promised; what was in the balance is settled."""
        found: dict[str, list[str]] = {}
        documents = store_of(memory).catalog.documents
        for block, left in store_of(memory).blocks():
            names = np.repeat(block.runs[:, 0], block.runs[:, 2])
            for word, name, kept in zip(block.words, names.tolist(), left.tolist(), strict=True):
                if kept:
                    found.setdefault(documents[name].name, []).append(word)
        for name in {*found, *self.must}:
            words = found.get(name, [])
            if name == self.reading:
                assert words == words_of(name)[: len(words)], f"{name} is not what was read"
            elif name == self.forgetting:
                assert words in ([], self.must[name]), f"{name} is half forgotten"
            elif self.undoing is not None and name == self.undoing[0]:
                assert words in (self.undoing[1], self.must[name]), f"{name} is half taken back"
            else:
                assert words == self.must[name], f"{name} is lost, or back"
            self.must[name] = words


@pytest.fixture
def zygote(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process that forks the children."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.memory.crash_child", str(tmp_path / "warm")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
    )
    yield process
    assert process.stdin is not None
    process.communicate()


def hear(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process that forks has died"
    said: dict[str, Any] = json.loads(line)
    return said


def killed(
    process: subprocess.Popen[bytes], folder: Path, seed: int, after: float, *, begun: bool
) -> list[dict[str, Any]]:
    """Let a child live for a while, or that long after it has opened the memory; what it said."""
    assert process.stdin is not None
    process.stdin.write(f"{folder} {seed}\n".encode())
    process.stdin.flush()
    child = hear(process)["pid"]
    said = [hear(process)] if begun else []
    time.sleep(after)
    # One that has failed by itself says so.
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    while (line := hear(process))["what"] != "gone":
        said.append(line)
    return said


@pytest.mark.torture
def test_kills_lose_nothing_and_bring_nothing_back(
    tmp_path: Path, zygote: subprocess.Popen[bytes], torture: Torture
) -> None:
    assert hear(zygote)["what"] == "ready"
    during: dict[str, int] = {}
    seed = torture.seed
    for round_ in range(torture.cases(4, 42)):
        life, folder = Life(), tmp_path / f"m{round_}"
        for kill in range(KILLS):
            seed += 1
            after = float(torture.random.uniform(0, 0.15))
            what = life.hear(killed(zygote, folder, seed, after, begun=kill % 2 > 0))
            during[what] = during.get(what, 0) + 1
            if not (folder / "format.json").exists():
                continue
            # What a crash left is mended here or by the next child; a reader must do without.
            mode = "write" if seed % 4 == 0 else "read"
            with open_toy(folder, mode=mode) as memory:
                assert memory.check(deep=True) == [], (seed, what)
                life.compare(memory)
    assert during.keys() - {"open"}
    if torture.whole:
        assert {"read", "long", "forget", "undo", "compact", "snapshot"} <= set(during), during
    for what, count in sorted(during.items()):
        torture.tell("kill -9", f"folder, during {what}", count)
