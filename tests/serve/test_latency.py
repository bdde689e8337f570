"""However much is asked for, somebody else who asks meanwhile is answered at once."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running_service import Client, in_process
from unbounded.serve.limits import Limits

CEILING = 1.0
"""Seconds. Measured: 0.54 with all that they take, two cores that others use too; it was 17.5."""

LIMITS = Limits()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Client]:
    """In a process of its own: here is somebody else's interpreter."""
    with in_process(tmp_path_factory.mktemp("slow") / "s", model_folder, "--quiet") as process:
        client = Client(process.url)
        client.make("a", "The zorble ate the grass.")
        yield client


@contextmanager
def watched(url: str) -> Iterator[list[float]]:
    """How long `/healthz` took, again and again, until this ends."""
    waited: list[float] = []
    over = threading.Event()

    def watch() -> None:
        client = Client(url)
        while True:
            began = time.monotonic()
            assert client.get("/healthz") == {"status": "alive"}
            waited.append(time.monotonic() - began)
            if over.wait(0.01):
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield waited
    finally:
        over.set()
        thread.join()


def largest(share: float) -> dict[str, tuple[str, str, Any, set[int]]]:
    """What every route takes at most, and a little more; work by the word is shared out."""
    words = round(LIMITS.ask / 2 * share)
    path, tokens, symbols = "/v1/memories/a", list(range(300)), "(" * round(LIMITS.ask * share)
    completion = {"model": "a", "prompt": "The", "n": 8, "logprobs": 20}
    completion |= {"max_tokens": round(128 * max(share, 0.1))}
    sixteen = {"model": "a", "prompt": [[1] * 100_000] * 16, "max_tokens": 1}
    many = {"model": "a", "prompt": [(tokens * 334)[: round(100_000 * share / 2)]]}
    wrong = {"model": "a", "prompt": [""] * 60 + [[-1] * 100_000]}
    return {
        "sixteen prompts": ("POST", "/v1/completions", sixteen, {413}),
        "brackets": ("POST", f"{path}/read", b"[" + b"[]," * 9_000_000 + b"1]", {413}),
        "members": ("POST", f"{path}/read", {f"m{n}": 0 for n in range(90_000)}, {422}),
        "bad tokens": ("POST", "/detokenize", {"tokens": [-1] * 100_000}, {422}),
        "bad prompts": ("POST", "/v1/completions", wrong, {413, 422}),
        "too many tokens": ("POST", "/detokenize", {"tokens": [1] * 200_000}, {413, 422}),
        "tokens": ("POST", "/detokenize", {"tokens": [1] * 100_000}, {200}),
        "text to tokens": ("POST", "/tokenize", {"prompt": "ü" * 100_000}, {200}),
        "symbols": ("POST", "/tokenize", {"prompt": "(" * 100_000}, {200}),
        "name": ("POST", "/v1/memories", {"name": "x" * 1_000_000}, {422}),
        "empty lines": (
            "POST",
            f"{path}/read",
            {"text": "\n" * round(LIMITS.text * share), "document": "empty"},
            {200},
        ),
        "one line": ("POST", f"{path}/read", {"text": "a" * LIMITS.text}, {413}),
        "escapes": ("POST", f"{path}/read", {"text": "\x01" * 5_000_000, "time": "no"}, {422}),
        "matching": ("POST", f"{path}/forget", {"matching": "(" * 1000}, {200}),
        "predict": ("POST", f"{path}/predict", {"text": symbols, "n": 100, "sources": 20}, {200}),
        "score": ("POST", f"{path}/score", {"text": ". " * words, "shares": True}, {200}),
        "complete": (
            "POST",
            f"{path}/complete",
            {"text": "The", "words": round(256 * max(share, 0.1))},
            {200, 503},
        ),
        "completions": ("POST", "/v1/completions", completion, {200, 503}),
        "echo": (
            "POST",
            "/v1/completions",
            many | {"max_tokens": 0, "echo": True, "logprobs": 0},
            {200, 413, 503},
        ),
        "per word": ("POST", f"{path}/read", {"text": ". " * words, "per_word": True}, {200}),
    }


@pytest.mark.torture
def test_health_is_told_while_the_most_is_asked_of_every_route(
    service: Client, whole: bool
) -> None:
    waited: dict[str, float] = {}
    for name, (method, path, body, expected) in largest(1.0 if whole else 0.06).items():
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with watched(service.url) as seconds:
            kind = {"Content-Type": "application/json"}
            answer = service.ask(method, path, content=data, headers=kind, timeout=900)
        assert answer.status_code in expected, (name, answer.text[:200])
        waited[name] = max(seconds)
        for route in ("", "/documents"):
            service.get(f"/v1/memories/a{route}")
    print(json.dumps(waited, indent=1))
    assert max(waited.values()) < CEILING, waited
