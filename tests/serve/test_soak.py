"""Friendly, slow and hostile clients together, for as long as it takes to see a leak."""

import json
import random
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.serve.running_service import (
    JSON,
    Client,
    answered,
    bearer,
    connected,
    head,
    in_process,
    sentences,
)
from unbounded.serve.keys import Keys

TEXT = sentences(60)
SAMPLE, WHOLE = 8.0, 600.0


class Crowd:
    """Clients of several kinds until it is over, and how often each had its way."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.bearer = bearer(token)
        self.token = token
        self.over = threading.Event()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.health: list[float] = []
        self.late = 0.0
        """How much longer than asked for this process slept at most: what is the machine's own."""

    def run(self, seconds: float, look: Callable[[], None]) -> None:
        """All of them at once; `look` is called every second."""
        kinds = (
            self.reads_and_asks,
            self.makes_and_deletes,
            self.leaves,
            self.half_a_head,
            self.half_a_body,
            self.takes_nothing,
            self.has_no_key,
            self.is_healthy,
        )
        threads = [threading.Thread(target=self._again, args=(kind,)) for kind in kinds]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.failures:
            time.sleep(1)
            look()
        self.over.set()
        for thread in threads:
            thread.join()

    def _again(self, kind: Callable[[Client], None]) -> None:
        client = Client(self.url, self.token)
        while not self.over.is_set():
            try:
                kind(client)
            except Exception as error:
                self.failures.append(f"{kind.__name__}: {type(error).__name__} {error}"[:500])
                return
            self.counts[kind.__name__] += 1

    def reads_and_asks(self, client: Client) -> None:
        client.post("/v1/memories/a/read", text=TEXT, document="d")
        client.post("/v1/memories/a/predict", text="Sentence", n=10)
        client.post("/v1/memories/a/score", text=TEXT[:1000], shares=True)
        client.post("/v1/completions", model="a", prompt="Sentence", max_tokens=4, logprobs=3)
        client.post("/v1/memories/a/forget", document="d")

    def makes_and_deletes(self, client: Client) -> None:
        client.good("DELETE", client.make("brief", "The zorble ate the grass."))
        self.over.wait(0.2)

    def leaves(self, client: Client) -> None:
        for event in client.events("/v1/memories/b/complete", text="The", words=64, stream=True):
            if random.random() < 0.2 or event == "[DONE]":
                break
        self.over.wait(0.1)

    def half_a_head(self, client: Client) -> None:
        with connected(self.url) as line:
            line.sendall(head("GET", "/v1/memories")[: random.randrange(40)])
            self.over.wait(0.3)

    def half_a_body(self, client: Client) -> None:
        with connected(self.url) as line:
            asked = head(
                "POST", "/v1/memories/b/read", JSON, self.bearer, "Content-Length: 9000000"
            )
            line.sendall(asked + b'{"text": "' + b"a" * random.randrange(1_000_000))
            self.over.wait(0.3)

    def takes_nothing(self, client: Client) -> None:
        with connected(self.url) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            line.sendall(head("GET", "/v1/openapi.json") * 200)
            self.over.wait(2)

    def has_no_key(self, client: Client) -> None:
        with connected(self.url) as line:
            line.sendall(head("POST", "/v1/memories/b/read", JSON, "Content-Length: 30000000"))
            line.sendall(b'{"text": "' + b"a" * 100_000)
            status, body = answered(line)
            assert status == 401
            assert json.loads(body)["error"]["code"] == "no_key"
        self.over.wait(0.05)

    def is_healthy(self, client: Client) -> None:
        began = time.monotonic()
        client.get("/healthz")
        self.health.append(time.monotonic() - began)
        began = time.monotonic()
        self.over.wait(0.1)
        self.late = max(self.late, time.monotonic() - began - 0.1)


@pytest.mark.torture
def test_memory_and_descriptors_stay_flat_under_friends_and_enemies(
    tmp_path: Path, model_folder: Path, whole: bool
) -> None:
    root, seconds = tmp_path / "s", WHOLE if whole else SAMPLE
    token = Keys(root).add("soak", [], "write")[1]
    with in_process(root, model_folder, "--quiet") as process:
        client = Client(process.url, token)
        for name in ("a", "b"):
            client.make(name, TEXT, "first")
        crowd = Crowd(process.url, token)
        megabytes: list[float] = []
        descriptors: list[int] = []

        def look() -> None:
            megabytes.append(process.megabytes())
            descriptors.append(process.descriptors())

        crowd.run(seconds, look)
        figures = client.http.get("/metrics").text
    # The first quarter is for pools and caches to fill.
    late = len(megabytes) // 4
    half = (len(megabytes) + late) // 2
    growth = statistics.median(megabytes[half:]) - statistics.median(megabytes[late:half])
    told = {
        "seconds": round(seconds),
        **crowd.counts,
        "megabytes": [round(megabytes[at]) for at in (0, late, half, -1)],
        "growth of the median, megabytes": round(growth, 1),
        "descriptors": [min(descriptors[late:]), max(descriptors[late:])],
        "health, ms": [
            round(float(np.quantile(crowd.health, part)) * 1e3) for part in (0.5, 0.99, 1)
        ],
        "longest oversleep of the client, ms": round(crowd.late * 1e3),
    }
    print(json.dumps(told, indent=1))
    assert crowd.failures == []
    assert 'status="5' not in figures
    assert all(crowd.counts[kind] for kind in ("reads_and_asks", "takes_nothing", "leaves"))
    assert max(descriptors[late:]) - min(descriptors[late:]) < 40
    assert growth < 16 if whole else growth < 64
    # Of a thousand one may be the machine's own.
    assert np.quantile(crowd.health, 0.99) < 1
