"""The service under load beside the library called directly; and killed in the middle."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

import numpy as np

import unbounded.memory
from benchmarks.load import Tally, Texts, call, use, use_directly
from unbounded.lm import Pretrained, load_model
from unbounded.memory import Memory
from unbounded.memory.log_contents import rows

Say = Callable[[str], None]


def bench_serve(
    model: Path,
    *,
    users: int,
    memories: int,
    seconds: float,
    threads: int,
    direct: float,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """The figures of one run: direct, the service with a kill -9 half-way, and direct again."""
    loaded = load_model(model)
    texts = Texts(_words(loaded))
    with tempfile.TemporaryDirectory(prefix="unbounded-") as folder:
        place = Path(folder)
        with _Direct(place / "direct", loaded, users, memories, texts) as library:
            library.run(direct, 1)
            before = {n: library.run(direct, n) for n in sorted({1, threads})}
            say(f"library: {before} words a second by threads")
            service = _Service(place / "memories", model, threads)
            try:
                figures = asyncio.run(_under_load(service, users, memories, texts, seconds, say))
            finally:
                service.kill()
            after = {n: library.run(direct, n) for n in sorted({1, threads})}
        found = _what_is_there(place / "memories", loaded, memories)
    tally: Tally = figures.pop("tally")
    best = max((before[n] + after[n]) / 2 for n in before)
    lost = [
        document
        for memory, document, mark, words in tally.watermark
        if found[memory].get(document) != (mark, words)
    ]
    return {
        "users": users,
        "memories": memories,
        "threads": threads,
        "library_words_per_second": {"before": before, "after": after, "taken": best},
        **figures,
        "ratio": figures["words_per_second"] / best,
        "latency_ms": tally.latencies(),
        "library_latency_ms": library.tally.latencies(),
        "acknowledged": len(tally.watermark),
        "lost": len(lost),
        "strange": len(tally.strange),
        "refused": tally.refused,
        "interrupted": tally.interrupted,
    }


def _words(model: Pretrained) -> list[str]:
    return model.vocabulary.decode(np.arange(min(20_000, model.vocabulary.base_size)))


@final
class _Direct:
    """As many memories, in this process."""

    def __init__(
        self, folder: Path, model: Pretrained, users: int, memories: int, texts: Texts
    ) -> None:
        self._folder, self._model = folder, model
        self._count, self._users, self._texts = memories, users, texts
        self._turn = 0
        self.tally = Tally()

    def __enter__(self) -> "_Direct":
        from unbounded.presets import set_threads

        set_threads(1)
        self._memories: list[Memory] = [
            unbounded.memory.open(self._folder / f"m{n}", self._model) for n in range(self._count)
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for memory in self._memories:
            memory.close()

    def run(self, seconds: float, threads: int) -> float:
        """Words a second with so many threads, each with memories of its own."""
        shares: list[list[int]] = [[] for _ in range(threads)]
        for user in range(self._users):
            shares[user % self._count % threads].append(user)
        began = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            work = [
                pool.submit(use_directly, self._memories, share, self._texts, seconds, self._turn)
                for share in shares
            ]
            tallies = [one.result() for one in work]
        self._turn += 100_000
        self.tally = tallies[0]
        return round(sum(tally.words for tally in tallies) / (time.monotonic() - began), 1)


@final
class _Service:
    """The command in a process of its own, which can be killed and started again."""

    def __init__(self, root: Path, model: Path, threads: int) -> None:
        self._words = [sys.executable, "-m", "unbounded", "serve", str(root), "--model", str(model)]
        self._words += ["--threads", str(threads), "--quiet"]
        self._port = 0
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start, on the same port as before if there was one; the address, once it is ready."""
        self._child = subprocess.Popen(
            [*self._words, "--port", str(self._port)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._child.stderr is not None
        url = self._child.stderr.readline().strip().rstrip("/")
        self._port = int(url.rpartition(":")[2])
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{url}/readyz", timeout=1):
                    return url
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the service never became ready")

    def kill(self) -> None:
        """Without a word."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()
            assert self._child.stderr is not None
            self._child.stderr.close()

    def stop(self) -> float:
        """As a signal stops it; how long that took."""
        assert self._child is not None
        began = time.monotonic()
        self._child.send_signal(signal.SIGTERM)
        self._child.communicate()
        if self._child.returncode not in (0, -signal.SIGTERM):
            raise RuntimeError(f"the service ended with status {self._child.returncode}")
        return time.monotonic() - began


async def _under_load(
    service: _Service, users: int, memories: int, texts: Texts, seconds: float, say: Say
) -> dict[str, Any]:
    url = await asyncio.to_thread(service.start)
    line = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    for number in range(memories):
        status, answer = await call(url, line, "/v1/memories", {"name": f"m{number}"})
        if status != 201:
            raise RuntimeError(f"a memory could not be made: {answer!r}")
    line[1].close()
    say("service: memories made, load begins")
    began, tally = time.monotonic(), Tally()
    # One part before the kill, one after: their sums leave out the time in which nothing lived.
    until = began + seconds
    work = [
        asyncio.create_task(use(url, user, memories, texts, until, tally)) for user in range(users)
    ]
    await asyncio.sleep(seconds / 2)
    words_before, lived = tally.words, time.monotonic() - began
    await asyncio.to_thread(service.kill)
    down = time.monotonic()
    await asyncio.to_thread(service.start)
    down = time.monotonic() - down
    say(f"service: killed, and ready again after {down:.1f} s")
    await asyncio.gather(*work)
    whole = time.monotonic() - began
    stopping = await asyncio.to_thread(service.stop)
    return {
        "tally": tally,
        "seconds": round(whole, 1),
        "words_per_second": round(words_before / lived, 1),
        "words_per_second_with_restart": round(tally.words / whole, 1),
        "restart_seconds": round(down, 2),
        "stop_seconds": round(stopping, 2),
    }


def _what_is_there(
    root: Path, model: Pretrained, memories: int
) -> list[dict[str, tuple[str, int]]]:
    """By memory and document, the mark and the number of words, read from the files themselves."""
    out: list[dict[str, tuple[str, int]]] = []
    for number in range(memories):
        documents: dict[str, tuple[str, int]] = {}
        with unbounded.memory.open(root / f"m{number}", model, mode="read") as memory:
            if found := memory.check():
                raise RuntimeError(f"memory {number}: {found[0]}")
            for words, names, _, _ in rows(memory.backend.store):
                for word, name in zip(words, names, strict=True):
                    mark = word if word.startswith("zq") else ""
                    if mark and not mark.startswith(f"zq{number}x"):
                        raise RuntimeError(f"memory {number} holds words of another")
                    had = documents.get(name, ("", 0))
                    documents[name] = (had[0] or mark, had[1] + 1)
        out.append(documents)
    return out
