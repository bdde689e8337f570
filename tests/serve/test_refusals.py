"""What is refused, and when: before the body is read where that can be; by a JSON body always."""

import json
import select
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running_service import (
    JSON,
    Client,
    answered,
    bearer,
    connected,
    exchanged,
    head,
    in_thread,
)
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits

LENGTH = "Content-Length: 30000000"
CHUNKED = "Transfer-Encoding: chunked"
READ = "/v1/memories/notes/read"


@dataclass(frozen=True)
class Locked:
    """A service with keys: one for one memory to read, one for all to write."""

    url: str
    reader: str
    boss: str

    def routes(self) -> list[tuple[str, str]]:
        """Every method and path of the OpenAPI page that needs a key."""
        page = Client(self.url).get("/v1/openapi.json")
        return [
            (method.upper(), path)
            for path, operations in page["paths"].items()
            for method, operation in operations.items()
            if "security" in operation
        ]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[Locked]:
    root: Path = tmp_path_factory.mktemp("locked")
    reader = Keys(root).add("reader", ["notes"], "read")[1]
    boss = Keys(root).add("boss", [], "write")[1]
    limits = Limits(in_flight=3_000_000, memories=2)
    with in_thread(root, model, keys=Keys(root), limits=limits) as url:
        Client(url, boss).make("notes")
        yield Locked(url, reader, boss)


@pytest.mark.parametrize("length", [LENGTH, CHUNKED])
def test_without_a_key_every_route_answers_before_the_body_has_come(
    length: str, locked: Locked
) -> None:
    found = locked.routes()
    assert len(found) > 12
    begun = b"10\r\n" + b'{"text": "aaaaaa' if length is CHUNKED else b'{"text": "a'
    for method, path in found:
        asked = [("X: y", (401, "no_key")), (bearer("ub_wrong"), (401, "bad_key"))]
        if "{name}" in path:
            asked.append((bearer(locked.reader), (403, "not_allowed")))
        for key, expected in asked:
            sent = head(method, path.replace("{name}", "other"), length, JSON, key) + begun
            assert exchanged(locked.url, sent) == expected, (method, path)
        # A key for reading writes nothing.
        if path.endswith(("/read", "/forget")) or method == "DELETE":
            place = path.replace("{name}", "notes")
            sent = head(method, place, length, JSON, bearer(locked.reader)) + begun
            assert exchanged(locked.url, sent) == (403, "not_allowed")


def test_what_asks_may_be_no_longer_than_what_is_asked_needs(locked: Locked) -> None:
    for method, path in locked.routes():
        if method == "POST" and not path.endswith("/read"):
            place, length = path.replace("{name}", "notes"), "Content-Length: 1300000"
            sent = head(method, place, length, JSON, bearer(locked.boss))
            assert exchanged(locked.url, sent) == (413, "too_large")


def test_a_body_of_brackets_is_refused_before_it_is_whole(locked: Locked) -> None:
    """The parser would hold the interpreter for seconds; a text of that length it does not mind."""
    asked, brackets = head("POST", READ, LENGTH, JSON, bearer(locked.boss)), b"[]," * 500_000
    assert exchanged(locked.url, asked + b"[" + brackets) == (413, "too_large")
    with connected(locked.url) as line:
        line.sendall(asked + b'{"text": "' + brackets)
        line.settimeout(0.5)
        with pytest.raises(TimeoutError):
            answered(line)


def test_bodies_under_way_are_bounded_together(locked: Locked) -> None:
    asked = head("POST", READ, LENGTH, JSON, bearer(locked.boss))
    lines = [connected(locked.url) for _ in range(3)]
    try:
        for line in lines:
            line.sendall(asked + b'{"text": "' + b"a" * 1_400_000)
        (refused,), _, _ = select.select(lines, [], [], 30)
        assert answered(refused)[0] == 429
        lines.remove(refused)
        assert select.select(lines, [], [], 0.5)[0] == []
        refused.close()
    finally:
        for line in lines:
            line.close()
    assert Client(locked.url, locked.boss).post("/v1/memories/notes/predict", text="a")["words"]


def test_a_small_body_that_was_refused_leaves_the_connection_usable(locked: Locked) -> None:
    body = b'{"text": "' + b"a" * 200_000 + b'"}'
    with connected(locked.url) as line:
        line.sendall(head("POST", READ, f"Content-Length: {len(body)}", JSON) + body)
        assert answered(line)[0] == 401
        line.sendall(head("GET", "/v1/memories", bearer(locked.boss)))
        assert answered(line)[0] == 200


def test_a_body_that_does_not_say_its_length_is_counted_as_it_comes(
    tmp_path: Path, model: Pretrained
) -> None:
    data = b" " * 16_384
    chunk = b"%x\r\n%s\r\n" % (len(data), data)
    with in_thread(tmp_path / "s", model, limits=Limits(body=100_000)) as url:
        Client(url).make("notes")
        with connected(url) as line:
            line.sendall(head("POST", READ, JSON, CHUNKED))
            sent = 0
            while not select.select([line], [], [], 0.02)[0]:
                line.sendall(chunk)
                sent += len(data)
                assert sent < 1_000_000
            status, body = answered(line)
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")


def test_a_broken_body_is_refused(locked: Locked) -> None:
    boss, kind = Client(locked.url, locked.boss), {"Content-Type": "application/json"}
    for data in (b"", b"{", b"[" * 50_000, b'{"text": "x', b"\xff\xfe", b'{"text": NaN'):
        answer = boss.ask("POST", READ, content=data, headers=kind)
        assert answer.status_code in (400, 422)
    wrong: list[Any] = [{"text": 5}, {}, {"text": "x", "other": 1}, [], "x", {"text": "a\0b"}, None]
    for body in wrong:
        data = json.dumps(body).encode()
        assert boss.ask("POST", READ, content=data, headers=kind).status_code == 422
    assert boss.ask("POST", READ, content=b'{"text": "\\ud800"}', headers=kind).status_code == 422
    secret = "".join(["wugg", "lesecret"])
    answer = boss.ask("POST", READ, {"text": secret, "document": "x" * 201})
    assert answer.status_code == 422
    assert secret not in answer.text


def test_there_are_no_more_memories_than_allowed(locked: Locked) -> None:
    boss = Client(locked.url, locked.boss)
    boss.make("second")
    assert boss.refused(409, "POST", "/v1/memories", {"name": "third"}) == "full"
    assert boss.refused(409, "POST", "/v1/memories", {"name": "second"}) == "exists"
    boss.good("DELETE", "/v1/memories/second")


def test_a_request_that_never_ends_is_ended(tmp_path: Path, model: Pretrained) -> None:
    with in_thread(tmp_path / "s", model, limits=Limits(sending=0.3)) as url:
        sent = head("POST", "/v1/memories", JSON, "Content-Length: 100") + b'{"name"'
        assert exchanged(url, sent) == (408, "too_slow")


def test_a_text_that_is_too_long_is_refused(tmp_path: Path, model: Pretrained) -> None:
    limits = Limits(text=100, line=60, ask=50, explained=3)
    with in_thread(tmp_path / "s", model, limits=limits) as url:
        client = Client(url)
        path, long = client.make("a"), "x" * 51
        explained = {"model": "a", "prompt": "a b c d", "echo": True, "logprobs": 2}
        for where, body in (
            (f"{path}/read", {"text": "x\n" * 51}),
            (f"{path}/read", {"text": "x" * 61}),
            (f"{path}/score", {"text": long}),
            (f"{path}/predict", {"text": long}),
            (f"{path}/complete", {"text": long}),
            ("/v1/completions", {"model": "a", "prompt": long}),
            ("/v1/completions", explained),
            ("/tokenize", {"prompt": long}),
            ("/detokenize", {"tokens": [1] * 51}),
        ):
            assert client.refused(413, "POST", where, body) == "too_long"
