"""Many at once: reads in order, asking in between, nobody kept waiting for another's memory."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import unbounded
from tests.serve.running_service import Client, in_thread, sentences
from unbounded.lm import Pretrained
from unbounded.memory import SamplingParams
from unbounded.memory.local import LocalBackend
from unbounded.serve import streaming
from unbounded.serve.limits import Limits

LONG = sentences(500)


@dataclass
class Gate:
    """Where a thread of the service waits, until the test has looked at it."""

    reached: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(60)


def slowly(monkeypatch: pytest.MonkeyPatch, step: str, wait: Callable[[], None]) -> None:
    """Have memories wait before each such step."""
    real = getattr(LocalBackend, step)

    def waiting(*given: Any, **more: Any) -> Any:
        wait()
        return real(*given, **more)

    monkeypatch.setattr(LocalBackend, step, waiting)


def test_predictions_go_on_while_a_long_text_is_read(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = client.make("busy", "The zorble slept.", "first"), client.make("other")
    reading = threading.Event()
    slowly(monkeypatch, "_read_block", lambda: time.sleep(0.05))

    def read() -> None:
        body = {"text": LONG, "document": "long", "stream": True}
        for event in Client(client.url).events(f"{path}/read", **body):
            if event["event"] == "progress":
                reading.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    during: list[int] = []
    waited: list[float] = []
    while thread.is_alive() and len(during) < 50:
        began = time.monotonic()
        during.append(client.post(f"{path}/predict", text="Sentence")["entries"])
        client.post(f"{other}/predict", text="Sentence")
        waited.append(time.monotonic() - began)
    thread.join(60)
    whole = client.get(path)["entries"]
    # Between blocks and never within one: 512 words a block after the 5 of the first text.
    assert {(n - 5) % 512 for n in during if n < whole} == {0}
    assert len({n for n in during if n < whole}) > 1
    assert during == sorted(during)
    assert max(waited) < 30


def test_a_memory_that_forgets_is_asked_as_it_was_before(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = client.make("forgets", "The zorble slept.", "first")
    whole = client.post(f"{path}/read", text=sentences(50), document="long")["entries"]
    gates = [Gate(), Gate()]
    for gate, step in zip(gates, ("_restored", "compact"), strict=True):
        slowly(monkeypatch, step, gate.wait)

    def asked() -> tuple[int, bool, int]:
        answer = client.post(f"{path}/predict", text="The zorble", n=1, sources=3, word="slept")
        listed = {one["name"]: one["entries"] for one in client.get("/v1/memories")["memories"]}
        return answer["entries"], bool(answer["asked"]["sources"]), listed["forgets"]

    with ThreadPoolExecutor(1) as pool:
        other = Client(client.url)
        forgetting = pool.submit(lambda: other.post(f"{path}/forget", document="first"))
        for gate in gates:
            assert gate.reached.wait(60)
            assert asked() == (whole, True, whole)
            gate.open.set()
    assert forgetting.result()["forgotten"] == 5
    assert asked() == (whole - 5, False, whole - 5)


def test_what_is_read_at_once_is_read_one_after_another(
    client: Client, model: Pretrained, tmp_path: Path
) -> None:
    path = client.make("crowd")
    texts = [f"Speaker {n} says wuggle{n}." * 20 for n in range(12)]

    def read(n: int) -> int:
        answer = Client(client.url).post(f"{path}/read", text=texts[n], document=f"d{n}")
        entries: int = answer["entries"]
        return entries

    with ThreadPoolExecutor(12) as pool:
        entries = list(pool.map(read, range(12)))
    order = sorted(range(12), key=lambda n: entries[n])
    with unbounded.open(tmp_path / "m", model) as memory:
        for n in order:
            memory.read(texts[n], f"d{n}")
            assert len(memory) == entries[n]
        mine = memory.score("Speaker 3 says wuggle3.").prob.tolist()
    words = client.post(f"{path}/score", text="Speaker 3 says wuggle3.")["words"]
    assert [one["prob"] for one in words] == pytest.approx(mine)


def test_who_would_wait_too_long_is_told_when_to_come_again(
    tmp_path: Path, model: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_thread(tmp_path / "s", model, limits=Limits(waiting=2), threads=1) as url:
        path, gate = Client(url).make("a"), Gate()
        clients = [Client(url) for _ in range(10)]
        slowly(monkeypatch, "_read_block", gate.wait)
        with ThreadPoolExecutor(10) as pool:
            body = {"text": "It rains."}
            asked = [pool.submit(one.ask, "POST", f"{path}/read", body) for one in clients]
            # One is read, two wait.
            refused = [answer.result() for answer in islice(as_completed(asked, 60), 7)]
            gate.open.set()
        assert {answer.status_code for answer in refused} == {429}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert {answer.json()["error"]["code"] for answer in refused} == {"busy"}
        answers = [answer.result() for answer in asked]
        taken = [answer.json()["entries"] for answer in answers if answer.status_code == 200]
        assert sorted(taken) == [4, 8, 12]


def test_what_takes_too_long_is_ended(
    tmp_path: Path, model: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SamplingParams.draw

    def slow(self: SamplingParams, *given: Any) -> int:
        time.sleep(0.05)
        return real(self, *given)

    with in_thread(tmp_path / "s", model, limits=Limits(seconds=1.0)) as url:
        client = Client(url)
        path, body = f"{client.make('a')}/complete", {"text": "The", "words": 256}
        monkeypatch.setattr(SamplingParams, "draw", slow)
        assert client.refused(503, "POST", path, body) == "too_slow"
        events = list(client.events(path, **body, stream=True))
        assert events[-1]["error"]["code"] == "too_slow"


def test_memories_are_closed_and_opened_again_as_needed(tmp_path: Path, model: Pretrained) -> None:
    with in_thread(tmp_path / "s", model, limits=Limits(open=2)) as url:
        client = Client(url)
        paths = [client.make(f"m{n}", f"wuggle{n} " * 3) for n in range(4)]
        found = [one["entries"] for one in client.get("/v1/memories")["memories"]]
        assert sum(entries is not None for entries in found) == 2
        for n, path in enumerate(paths):
            assert client.get(path)["entries"] == 4
            assert client.post(f"{path}/predict", text="")["words"][0]["word"] == f"wuggle{n}"


def test_who_is_written_for_piece_by_piece_does_not_see_that_it_forgets(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "TURN", 0.0)
    path = client.make("written", sentences(20), "first")
    body = {"text": "Sentence", "words": 24, "stream": True, "seed": 1}
    openai = {"model": "written", "prompt": "Sentence 1 is", "max_tokens": 8, "stream": True}
    asked = {f"{path}/complete": body, "/v1/completions": openai | {"echo": True, "logprobs": 2}}
    over, other = threading.Event(), Client(client.url)

    def forget() -> None:
        while not over.is_set():
            other.post(f"{path}/read", text="The zorble slept.", document="second")
            other.post(f"{path}/forget", document="second")

    with ThreadPoolExecutor(1) as pool:
        forgetting = pool.submit(forget)
        try:
            ends = [list(client.events(where, **asked[where]))[-1] for where in [*asked] * 3]
        finally:
            over.set()
    forgetting.result()
    assert ends == ["[DONE]"] * 6
