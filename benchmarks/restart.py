"""Durable reading beside the same without a store, by turns; then kill -9, and a restart.

Reader and restart are processes of their own. Times are wall clock, syncs included; those of the
restart count from the start of its process, imports too. What was acknowledged must be there, and
the memory must say to the bit what it said before.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import unbounded
from unbounded.corpus import Line, Splitter, blocks, read_sentences
from unbounded.lm import load_model
from unbounded.memory import Memory
from unbounded.presets import MemoryConfig, available, build_online, set_threads

STRETCH = 10_000
"""Words that each reads before it is the other's turn."""

BLOCK = 512


def bench_restart(
    model: Path, text: Iterable[Line], folder: Path, entries: int, threads: int
) -> dict[str, Any]:
    """Read so many words into a memory in `folder`, die, and open it again."""
    read = _in_a_process(_read, model, text, folder, entries, threads)
    restart = _in_a_process(_restart, model, folder, read.pop("asked"), threads)
    same = all(read.pop(name) == restart.pop(name) for name in ("next", "nats"))
    return {
        "entries": entries,
        "read": read,
        "restart": restart,
        "lost": read["words"] - restart.pop("words"),
        "equal": same,
    }


def _in_a_process(work: Callable[..., None], *words: Any) -> dict[str, Any]:
    """What it sends before it ends, however it does; and seconds from its start to there."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(there, *words))
    began = time.perf_counter()
    child.start()
    there.close()
    try:
        found: dict[str, Any] = here.recv()
        found["seconds"] = time.perf_counter() - began
    except EOFError:
        child.join()
        raise RuntimeError(f"{work.__name__} ended with status {child.exitcode}") from None
    child.join()
    return found


def _read(
    out: Connection, folder: Path, text: Iterable[Line], place: Path, entries: int, threads: int
) -> None:
    set_threads(threads)
    model = load_model(folder)
    memory = unbounded.open(place, model)
    alone = build_online(model, None, available(model, "full"), MemoryConfig(), "characters")
    plain, durable, longest, bytes_written, words = 0.0, 0.0, 0.0, 0, 0
    for number, lines in enumerate(_stretches(text, model.tokenizer, entries)):
        for turn in (number % 2, 1 - number % 2):
            began, before = time.perf_counter(), _written()
            if turn:
                for block in blocks(read_sentences(lines, model.tokenizer), BLOCK):
                    alone.read(block.words)
                plain += time.perf_counter() - began
                continue
            block_began = began
            for reading in memory.follow(lines):
                words += len(reading.words)
                longest = max(longest, time.perf_counter() - block_began)
                block_began = time.perf_counter()
            durable += time.perf_counter() - began
            bytes_written += _written() - before
    figures = {
        "words": words,
        "durable_us": 1e6 * durable / words,
        "plain_us": 1e6 * plain / words,
        "ratio": plain / durable,
        "longest_block_s": longest,
        "bytes_per_word": bytes_written / words,
    }
    asked = next(iter(text)).text
    out.send(figures | {"asked": asked} | _said(memory, asked))
    os.kill(os.getpid(), signal.SIGKILL)


def _restart(out: Connection, folder: Path, place: Path, asked: str, threads: int) -> None:
    set_threads(threads)
    model = load_model(folder)
    began, heard = time.perf_counter(), [0]
    memory = unbounded.open(place, model, show=lambda done, total: heard.append(total))
    opened = time.perf_counter() - began
    out.send(
        {"words": len(memory), "open_s": opened, "read_again": max(heard)} | _said(memory, asked)
    )
    memory.close()


def _said(memory: Memory, asked: str) -> dict[str, Any]:
    guesses = [guess.word for guess in memory.predict("the", 5).words]
    return {"next": guesses, "nats": np.asarray(memory.score(asked).nats).tolist()}


def _stretches(text: Iterable[Line], tokenizer: Splitter, words: int) -> Iterator[list[Line]]:
    """Lines of about `STRETCH` words each, so many words in all."""
    rest, total = iter(text), 0
    while total < words:
        lines, count = list[Line](), 0
        for line in rest:
            lines.append(line)
            count += len(tokenizer.words(line.text)) + 1
            if count >= min(STRETCH, words - total):
                break
        if not lines:
            return
        yield lines
        total += count


def _written() -> int:
    """Bytes that this process has written so far, where the system says."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])
