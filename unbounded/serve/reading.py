"""Reading a text into a memory, and telling how far it is."""

from collections.abc import Iterator
from typing import Any

from unbounded.corpus import Line
from unbounded.memory import Memory
from unbounded.serve.asking import Tally
from unbounded.serve.events import Events
from unbounded.serve.refusals import Refused
from unbounded.serve.schemas import ReadRequest
from unbounded.serve.state import Service


async def read_all(
    service: Service, name: str, asked: ReadRequest, told: Events | None
) -> dict[str, Any]:
    """Read the whole text; what it returns is durable. Failures are told too, where one listens."""
    try:
        found = await _read(service, name, asked, told)
    except Exception as error:
        if not isinstance(error, Refused):
            service.observer.failed(error, memory=name)
        if told is None:
            raise
        told.fail(error)
        return {}
    if told is not None:
        told.put({"event": "done", **found})
        told.end()
    return found


async def _read(
    service: Service, name: str, asked: ReadRequest, told: Events | None
) -> dict[str, Any]:
    lines = _Lines(asked.text, asked.document)
    tally, nats, static = Tally(), [], []
    weights: dict[str, float] = {}
    async with service.registry.session(name) as session:
        before = len(session.memory.online.vocabulary)
        if told is not None:
            told.put({"event": "accepted", "characters": len(asked.text)})
        async for reading in session.follow(iter(lines), asked.time):
            alone, memory = tally.add(reading)
            weights = _weights(reading.experts, reading.weights[-1].tolist())
            service.observer.words.labels("read").inc(len(memory))
            if asked.per_word:
                nats += memory.round(4).tolist()
                static += alone.round(4).tolist()
            # Who does not listen is told of fewer blocks, and of the end.
            if told is not None and not told.full:
                told.put(
                    {
                        "event": "progress",
                        "words": tally.words,
                        "characters": lines.seen,
                        "entries": len(session.memory),
                        **_news(session.memory, before),
                        **tally.perplexities(),
                        "weights": weights,
                        "nats": float(memory.mean()),
                        "static_nats": float(alone.mean()),
                        "block": len(memory),
                    }
                )
        return {
            "words": tally.words,
            **_news(session.memory, before),
            "entries": len(session.memory),
            **tally.perplexities(),
            "weights": weights,
            **({"nats": nats, "static_nats": static} if asked.per_word else {}),
        }


def _news(memory: Memory, before: int) -> dict[str, int]:
    return {"new_words": len(memory.online.vocabulary) - before}


def _weights(experts: tuple[str, ...], weights: list[float]) -> dict[str, float]:
    return dict(zip(experts, weights, strict=True))


class _Lines:
    """The lines of a text, and how many characters of it were taken."""

    def __init__(self, text: str, document: str) -> None:
        self._text = text
        self._document = document
        self.seen = 0

    def __iter__(self) -> Iterator[Line]:
        number = 1
        while self.seen <= len(self._text):
            end = self._text.find("\n", self.seen)
            line = self._text[self.seen : None if end < 0 else end]
            self.seen += len(line) + 1
            yield Line(self._document, number, line)
            number += 1
        self.seen = len(self._text)


def check_lines(text: str, most: int) -> None:
    """Refuse a text with a line that is too long.

    >>> check_lines("ab\\nabc\\n\\na", 3)
    """
    at = 0
    while len(text) - at > most:
        # The last end of a line that is near enough; where there is none, the line is too long.
        end = text.rfind("\n", at, at + most + 1)
        if end < 0:
            raise Refused(413, "too_long", f"a line of more than {most:,} characters; break it up")
        at = end + 1
