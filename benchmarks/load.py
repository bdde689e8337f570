"""Users who read, score and predict, over HTTP and by calling the library, with the same texts."""

import asyncio
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, final
from urllib.parse import urlsplit

import numpy as np

from unbounded.memory import Memory

LINES, WORDS = 5, 11
"""A text: so many lines of so many words, each line ended."""

VERBS = ("read", "score", "predict")


@final
class Texts:
    """Texts of words that the network knows, and of one that only one document has."""

    def __init__(self, known: list[str]) -> None:
        self._known = [word for word in known if word.isalpha()][:3000]
        self._random = np.random.default_rng(1)

    def text(self, mark: str) -> str:
        """A text in which `mark` is a word of each line."""
        ranks = self._random.zipf(1.3, (LINES, WORDS - 1)) % len(self._known)
        return "\n".join(" ".join([mark, *(self._known[i] for i in row)]) for row in ranks.tolist())

    @staticmethod
    def mark(memory: int, document: int) -> str:
        """A word that nobody else writes."""
        return f"zq{memory}x{document}qz"


@dataclass
class Tally:
    """What was done, how long each took, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    words: int = 0
    watermark: list[tuple[int, str, str, int]] = field(default_factory=list)
    """Memory, document, mark, words."""
    strange: list[str] = field(default_factory=list)
    """Words of another memory that were seen."""
    refused: int = 0
    interrupted: int = 0

    def latencies(self) -> dict[str, dict[str, Any]]:
        """Percentiles of each verb, in milliseconds."""
        return {
            verb: {
                "count": len(took),
                **{f"p{p}": round(1e3 * float(np.percentile(took, p)), 1) for p in (50, 90, 99)},
                "max": round(1e3 * max(took), 1),
            }
            for verb, took in self.seconds.items()
        }


async def call(url: str, line: Any, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """One request over a connection that stays; as little of a client as will do."""
    reader, writer = line
    data = json.dumps(body).encode()
    host = urlsplit(url).netloc
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    await writer.drain()
    answer = await reader.readuntil(b"\r\n\r\n")
    status = int(answer.split(b" ", 2)[1])
    length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    return status, await reader.readexactly(length)


async def use(url: str, user: int, memories: int, texts: Texts, until: float, tally: Tally) -> None:
    """One user: reads, scores and predicts by turns, and comes again when cut off or refused."""
    memory, turn = user % memories, 0
    line: Any = None
    place = urlsplit(url)
    while time.monotonic() < until:
        verb, document = VERBS[turn % 3], f"u{user}-{turn}"
        mark = texts.mark(memory, user * 1_000_000 + turn)
        text = texts.text(mark)
        bodies: dict[str, dict[str, Any]] = {
            "read": {"text": text, "document": document},
            "score": {"text": text},
            "predict": {"text": text.split("\n")[0], "n": 10},
        }
        turn += 1
        began = time.monotonic()
        try:
            if line is None:
                line = await asyncio.open_connection(place.hostname, place.port, limit=1 << 24)
            path = f"/v1/memories/m{memory}/{verb}"
            status, answer = await call(url, line, path, bodies[verb])
        except (OSError, EOFError, asyncio.IncompleteReadError):
            tally.interrupted += 1
            if line is not None:
                line[1].close()
            line = None
            await asyncio.sleep(0.2)
            continue
        if status == 429:
            tally.refused += 1
            await asyncio.sleep(0.5)
            continue
        if status != 200:
            raise RuntimeError(f"{verb} was answered with {status}: {answer[:200]!r}")
        tally.seconds[verb].append(time.monotonic() - began)
        if verb == "read":
            words = json.loads(answer)["words"]
            tally.watermark.append((memory, document, mark, words))
        if verb != "predict":
            tally.words += LINES * (WORDS + 1)
        tally.strange += foreign(memory, answer.decode())
    if line is not None:
        line[1].close()
        await line[1].wait_closed()


def foreign(memory: int, said: str) -> list[str]:
    """The marks of other memories in an answer."""
    marks = [part.partition("qz")[0] for part in said.split("zq")[1:]]
    return [mark for mark in marks if not mark.startswith(f"{memory}x")]


def use_directly(
    memories: list[Memory], users: list[int], texts: Texts, seconds: float, first: int
) -> Tally:
    """The same without a service: these users' turns, one after another, in one thread."""
    tally, turn = Tally(), first
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for user in users:
            number = user % len(memories)
            memory, verb = memories[number], VERBS[turn % 3]
            text = texts.text(texts.mark(number, user * 1_000_000 + turn))
            began = time.monotonic()
            if verb == "read":
                memory.read(text, f"u{user}-{turn}")
            elif verb == "score":
                # What the service answers with is computed too.
                _ = memory.score(text).static
            else:
                memory.predict(text.split("\n")[0], 10)
            tally.seconds[verb].append(time.monotonic() - began)
            if verb != "predict":
                tally.words += LINES * (WORDS + 1)
        turn += 1
    return tally
