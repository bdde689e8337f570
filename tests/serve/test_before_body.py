"""What can be refused before the body is read is refused then."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.living import Client, answered, connected, head, living
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits

LENGTH = 30_000_000
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def locked(
    tmp_path_factory: pytest.TempPathFactory, model: Pretrained
) -> Iterator[tuple[str, str, str]]:
    """An address, the token of a key for one memory to read, and one for all to write."""
    root: Path = tmp_path_factory.mktemp("body")
    reader = Keys(root).add("reader", ["notes"], "read")[1]
    boss = Keys(root).add("boss", [], "write")[1]
    with living(root, model, keys=Keys(root), limits=Limits(held=3_000_000)) as url:
        Client(url, boss).post("/v1/memories", name="notes")
        yield url, reader, boss


def routes(url: str) -> list[tuple[str, str]]:
    """Every method and path of the OpenAPI page that needs a key."""
    page = Client(url).get("/v1/openapi.json")
    return [
        (method.upper(), path)
        for path, operations in page["paths"].items()
        for method, operation in operations.items()
        if "security" in operation
    ]


@pytest.mark.parametrize("length", [f"Content-Length: {LENGTH}", "Transfer-Encoding: chunked"])
def test_without_a_key_every_route_answers_before_the_body_has_come(
    length: str, locked: tuple[str, str, str]
) -> None:
    url, reader, _ = locked
    found = routes(url)
    assert len(found) > 12
    begun = b"10\r\n" + b'{"text": "aaaaaa' if "chunked" in length else b'{"text": "a'
    for method, path in found:
        for bearer, status in (
            ("", {401}),
            ("Authorization: Bearer ub_wrong", {401}),
            (f"Authorization: Bearer {reader}", {403} if "{name}" in path else {401, 403}),
        ):
            if bearer.endswith(reader) and "{name}" not in path:
                continue
            asked = head(method, path.replace("{name}", "other"), length, JSON, bearer or "X: y")
            with connected(url) as line:
                line.sendall(asked + begun)
                found_status, body = answered(line)
            assert found_status in status, (method, path, body)
            assert json.loads(body)["error"]["code"] in ("no_key", "bad_key", "not_allowed")


def test_a_key_for_reading_writes_nothing_and_is_told_before_the_body_has_come(
    locked: tuple[str, str, str],
) -> None:
    url, reader, _ = locked
    bearer = f"Authorization: Bearer {reader}"
    for method, path in (("POST", "read"), ("POST", "forget"), ("DELETE", "")):
        place = f"/v1/memories/notes/{path}".rstrip("/")
        with connected(url) as line:
            line.sendall(head(method, place, f"Content-Length: {LENGTH}", JSON, bearer))
            assert answered(line)[0] == 403


def test_what_asks_may_be_no_longer_than_what_is_asked_needs(
    locked: tuple[str, str, str],
) -> None:
    url, _, boss = locked
    bearer = f"Authorization: Bearer {boss}"
    for method, path in routes(url):
        if method != "POST" or path.endswith("/read"):
            continue
        place = path.replace("{name}", "notes")
        with connected(url) as line:
            line.sendall(head(method, place, "Content-Length: 1300000", JSON, bearer))
            assert answered(line)[0] == 413


def test_a_body_of_brackets_is_refused_before_it_is_whole(locked: tuple[str, str, str]) -> None:
    """The parser would hold the interpreter for seconds; a text of that length it does not mind."""
    url, _, boss = locked
    bearer, text = f"Authorization: Bearer {boss}", b'{"text": "' + b"[]," * 500_000
    for begun, status in ((b"[" + b"[]," * 500_000, 413), (text, None)):
        with connected(url) as line:
            asked = head("POST", "/v1/memories/notes/read", "Content-Length: 30000000", JSON)
            line.sendall(asked[:-2] + f"{bearer}\r\n\r\n".encode() + begun)
            if status is not None:
                assert answered(line)[0] == status
            else:
                line.settimeout(0.5)
                with pytest.raises(TimeoutError):
                    answered(line)


def test_bodies_under_way_are_bounded_together(locked: tuple[str, str, str]) -> None:
    url, _, boss = locked
    bearer = f"Authorization: Bearer {boss}"
    asked = head("POST", "/v1/memories/notes/read", f"Content-Length: {LENGTH}", JSON, bearer)
    lines = [connected(url) for _ in range(3)]
    try:
        for line in lines:
            line.sendall(asked + b'{"text": "' + b"a" * 1_400_000)
        statuses = []
        for line in lines:
            line.settimeout(2)
            try:
                statuses.append(answered(line)[0])
            except TimeoutError:
                statuses.append(0)
        assert sorted(statuses) == [0, 0, 429]
    finally:
        for line in lines:
            line.close()
    assert Client(url, boss).post("/v1/memories/notes/predict", text="a")["words"]


def test_a_small_body_that_was_refused_leaves_the_connection_usable(
    locked: tuple[str, str, str],
) -> None:
    url, _, boss = locked
    body = b'{"text": "' + b"a" * 200_000 + b'"}'
    with connected(url) as line:
        asked = head("POST", "/v1/memories/notes/predict", f"Content-Length: {len(body)}", JSON)
        line.sendall(asked + body)
        assert answered(line)[0] == 401
        line.sendall(head("GET", "/v1/memories", f"Authorization: Bearer {boss}"))
        assert answered(line)[0] == 200
