"""No answer is longer than was asked for, and none is broken by what is strange."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running_service import Client, in_thread
from unbounded.lm import Pretrained
from unbounded.serve.limits import Limits
from unbounded.serve.tokens import BYTES

LONGEST, WORDS = 2_000, 40
"""Letters of four bytes; a word has at most 100 bytes, however long it was written."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[Client]:
    """A memory whose likeliest words are very long."""
    root: Path = tmp_path_factory.mktemp("hostile")
    with in_thread(root, model, limits=Limits(documents=5, days=5)) as url:
        client = Client(url)
        words = " ".join("\U00010330" * LONGEST + str(n) for n in range(WORDS))
        client.make("long", f"{words}\n" * 3, "x" * 200)
        client.make("notes", "The zorble ate the grass.")
        yield client


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/memories/long/predict", {"n": 100, "sources": 20}),
        ("/v1/memories/long/complete", {"words": 64}),
        ("/v1/memories/long/complete", {"words": 16, "stream": True}),
        ("/v1/completions", {"model": "long", "max_tokens": 16, "n": 2, "logprobs": 20}),
        (
            "/v1/completions",
            {"model": "long", "prompt": "a b c", "echo": True, "max_tokens": 0, "logprobs": 20},
        ),
    ],
)
def test_an_answer_is_no_longer_for_long_words(
    path: str, body: dict[str, Any], hostile: Client
) -> None:
    answer = hostile.ask("POST", path, body)
    assert answer.status_code == 200
    # Up to 30 MB are promised; of all these none needs a tenth of it.
    assert len(answer.content) < 3_000_000
    # Events have escapes.
    text = answer.text.replace("\\ud800\\udf30", "\U00010330")
    assert "\U00010330" * 25 in text
    assert "\U00010330" * 26 not in text


def test_documents_and_days_are_told_a_page_at_a_time(hostile: Client) -> None:
    path = hostile.make("many")
    for n in range(12):
        when = f"20{n:02}-01-01T00:00:00Z"
        hostile.post(f"{path}/read", text="a", document=f"d{n}", time=when)
    seen: list[str] = []
    query, first = "", None
    while first != 0:
        found = hostile.get(f"{path}/documents{query}")
        assert len(found["documents"]) <= 5
        seen = [one["name"] for one in found["documents"]] + seen
        first = found["first"]
        query = f"?before={first}"
    assert seen == [f"d{n}" for n in range(12)]
    days = hostile.get(path)["words_by_day"]
    assert list(days) == [f"20{n:02}-01-01" for n in range(7, 12)]


@pytest.mark.parametrize(
    "time",
    [
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "1969-12-31T23:59:59Z",
    ],
)
def test_whatever_time_is_taken_can_be_told_again(time: str, hostile: Client) -> None:
    path = "/v1/memories/times"
    hostile.ask("POST", "/v1/memories", {"name": "times"})
    read = hostile.ask("POST", f"{path}/read", {"text": "The zorble ate.", "time": time})
    forgets = hostile.ask("POST", f"{path}/forget", {"before": time, "compact": False})
    assert {read.status_code, forgets.status_code} <= {200, 422}
    for where in ("", "/documents"):
        hostile.get(path + where)
    assert hostile.post(f"{path}/predict", text="The", sources=3)["words"]


def _no_word(client: Client) -> list[list[int]]:
    base = client.get("/tokenizer_info")["vocab_size"] - BYTES - 2
    begin, end = base + BYTES, base + BYTES + 1
    return [[begin, end], [begin], [end], [base + 65], [begin, end, begin, end]]


@pytest.mark.parametrize("logprobs", [None, 0, 3])
@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("words", [0, 2])
def test_prompts_without_a_word_are_prompts(
    logprobs: int | None, echo: bool, words: int, hostile: Client
) -> None:
    asked = {"model": "notes", "echo": echo, "logprobs": logprobs, "max_tokens": words}
    for prompt in ("", " ", "\n\n\n", "\u200b"):
        answer = hostile.post("/v1/completions", prompt=prompt, **asked)["choices"][0]
        assert answer["text"].startswith(prompt if echo else "")
        if logprobs is not None:
            assert "".join(answer["logprobs"]["tokens"]) == answer["text"]
    for tokens in _no_word(hostile):
        answer = hostile.post("/v1/completions", prompt=tokens, **asked)["choices"][0]
        if logprobs is not None:
            said = len(tokens) * echo + words
            assert len(answer["logprobs"]["token_logprobs"]) == said


@pytest.mark.parametrize("temperature", [0, 5e-324, 1e-310, 1e-300, 1e-5])
def test_at_any_low_temperature_the_likeliest_word_is_drawn(
    temperature: float, hostile: Client
) -> None:
    body = {"text": "The", "words": 3, "temperature": temperature}
    said = hostile.post("/v1/memories/notes/complete", **body)["text"]
    assert said == hostile.post("/v1/memories/notes/complete", **body | {"temperature": 0})["text"]
    asked = {"model": "notes", "prompt": "The", "max_tokens": 3, "temperature": temperature}
    assert hostile.post("/v1/completions", **asked)["choices"][0]["text"] == said


def test_an_answer_is_the_json_that_it_was(hostile: Client) -> None:
    text = "The zorble – “ate” ünder \u2028 the 🦜. " * 60
    found = hostile.post("/v1/memories/notes/score", text=text, shares=True)
    assert len(found["words"]) > 512
    assert len({len(one["shares"]) for one in found["words"]}) == 1
    raw = hostile.ask("POST", "/v1/memories/notes/score", {"text": text, "shares": True})
    assert json.loads(raw.content) == found
    assert raw.headers["content-type"] == "application/json"
