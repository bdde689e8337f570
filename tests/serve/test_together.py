"""Many at once: reads in order, asking in between, nobody kept waiting for another's memory."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import unbounded
from tests.serve.living import Client, living
from unbounded.lm import Pretrained
from unbounded.lm.together import advance_together
from unbounded.serve.limits import Limits

LONG = "\n".join(f"Sentence {n} is about the number {n % 7} of the people." for n in range(500))


def test_texts_side_by_side_come_out_as_each_alone(model: Pretrained) -> None:
    random = np.random.default_rng(0)
    lm = model.recurrent
    jobs = []
    for length in (3, 1, 17, 3, 40):
        state = lm.advance(lm.start()[1], random.integers(0, lm.base_size, 5))[1]
        jobs.append((state, random.integers(0, lm.base_size + 5, length)))
    for (state, words), (hidden, after) in zip(jobs, advance_together(lm, jobs), strict=True):
        alone, then = lm.advance(state, words)
        np.testing.assert_array_equal(hidden, alone)
        for one, other in zip(after, then, strict=True):
            np.testing.assert_array_equal(one, other)


def test_predictions_go_on_while_a_long_text_is_read(client: Client) -> None:
    for name in ("busy", "other"):
        client.post("/v1/memories", name=name)
    client.post("/v1/memories/busy/read", text="The zorble slept.", document="first")
    seen: list[int] = []
    reading = threading.Event()

    def read() -> None:
        body = {"text": LONG, "document": "long", "stream": True}
        for event in Client(client.url).events("/v1/memories/busy/read", **body):
            if event["event"] == "progress":
                reading.set()
            seen.append(event.get("words", 0))

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    during: list[int] = []
    waited: list[float] = []
    while thread.is_alive() and len(during) < 50:
        began = time.monotonic()
        during.append(client.post("/v1/memories/busy/predict", text="Sentence")["entries"])
        client.post("/v1/memories/other/predict", text="Sentence")
        waited.append(time.monotonic() - began)
    thread.join(60)
    whole = client.get("/v1/memories/busy")["entries"]
    # Between blocks and never within one: 512 words a block after the 5 of the first text.
    assert {(n - 5) % 512 for n in during if n < whole} == {0}
    assert len({n for n in during if n < whole}) > 1
    assert during == sorted(during)
    assert max(waited) < 10


def test_a_memory_that_forgets_is_asked_as_it_was_before(client: Client) -> None:
    path = "/v1/memories/forgets"
    client.post("/v1/memories", name="forgets")
    client.post(f"{path}/read", text="The zorble slept.", document="first")
    whole = client.post(f"{path}/read", text=LONG, document="long")["entries"]
    said: list[int] = []
    forgetting = threading.Thread(
        target=lambda: said.append(
            Client(client.url).post(f"{path}/forget", document="first")["forgotten"]
        )
    )
    forgetting.start()
    during = []
    while forgetting.is_alive():
        answer = client.post(f"{path}/predict", text="The zorble", n=1, sources=3, word="slept")
        during.append((answer["entries"], bool(answer["asked"]["sources"])))
    forgetting.join()
    assert said == [5]
    assert len(during) > 1
    assert set(during[:-1]) <= {(whole, True), (whole - 5, False)}
    assert during.count((whole, True)) > 0
    after = client.post(f"{path}/predict", text="The zorble", n=1, word="slept")
    assert (after["entries"], after["asked"]["sources"]) == (whole - 5, [])


def test_what_is_read_at_once_is_read_one_after_another(
    client: Client, model: Pretrained, tmp_path: Path
) -> None:
    client.post("/v1/memories", name="crowd")
    texts = [f"Speaker {n} says wuggle{n}." * 20 for n in range(12)]

    def read(n: int) -> int:
        answer = Client(client.url).post("/v1/memories/crowd/read", text=texts[n], document=f"d{n}")
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
    words = client.post("/v1/memories/crowd/score", text="Speaker 3 says wuggle3.")["words"]
    assert [one["prob"] for one in words] == pytest.approx(mine, rel=1e-4)


def test_who_would_wait_too_long_is_told_when_to_come_again(
    tmp_path: Path, model: Pretrained
) -> None:
    with living(tmp_path / "s", model, limits=Limits(waiting=2), threads=1) as url:
        client = Client(url)
        client.post("/v1/memories", name="a")
        with ThreadPoolExecutor(10) as pool:
            answers = list(
                pool.map(
                    lambda n: Client(url).ask("POST", "/v1/memories/a/read", {"text": LONG[:9000]}),
                    range(10),
                )
            )
        refused = [answer for answer in answers if answer.status_code == 429]
        taken = [answer.json() for answer in answers if answer.status_code == 200]
        assert len(refused) + len(taken) == 10
        assert refused
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert {answer.json()["error"]["code"] for answer in refused} == {"busy"}
        words = taken[0]["words"]
        assert sorted(one["entries"] for one in taken) == [
            words * (n + 1) for n in range(len(taken))
        ]


def test_what_takes_too_long_is_ended(tmp_path: Path, model: Pretrained) -> None:
    with living(tmp_path / "s", model, limits=Limits(seconds=0.2)) as url:
        client = Client(url)
        client.post("/v1/memories", name="a")
        body = {"text": "The", "words": 256}
        assert client.refused(503, "POST", "/v1/memories/a/complete", body) == "too_slow"
        events = list(client.events("/v1/memories/a/complete", **body, stream=True))
        assert events[-1]["error"]["code"] == "too_slow"


def test_memories_are_closed_and_opened_again_as_needed(tmp_path: Path, model: Pretrained) -> None:
    with living(tmp_path / "s", model, limits=Limits(open=2)) as url:
        client = Client(url)
        for n in range(4):
            client.post("/v1/memories", name=f"m{n}")
            client.post(f"/v1/memories/m{n}/read", text=f"wuggle{n} " * 3, document="d")
        found = {one["name"]: one["entries"] for one in client.get("/v1/memories")["memories"]}
        assert sum(entries is not None for entries in found.values()) == 2
        for n in range(4):
            assert client.get(f"/v1/memories/m{n}")["entries"] == 4
            assert (
                client.post(f"/v1/memories/m{n}/predict", text="")["words"][0]["word"]
                == f"wuggle{n}"
            )
