"""What is refused, and how: with a status that fits and a JSON body that says why."""

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.serve.living import Client, living
from unbounded.lm import Pretrained
from unbounded.serve.bodies import POLICY
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits

BAD_NAMES = [
    "../up",
    "..",
    ".hidden",
    "a/b",
    "a\\b",
    "",
    "x" * 65,
    "ä",
    "a b",
    "%2e%2e",
    "a\n",
    "~",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locked") / "shelf"


@pytest.fixture(scope="module")
def tokens(root: Path) -> dict[str, str]:
    """Keys for all and for one, to write and to read."""
    keys = Keys(root)
    asked = {"boss": [[], "write"], "ann": [["ann"], "write"], "bob": [["bob", "shared"], "write"]}
    asked["guest"] = [["shared"], "read"]
    return {name: keys.add(name, scope, right)[1] for name, (scope, right) in asked.items()}  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def locked(root: Path, tokens: dict[str, str], model: Pretrained) -> Iterator[str]:
    with living(root, model, keys=Keys(root), limits=Limits(memories=4, body=100_000)) as url:
        boss = Client(url, tokens["boss"])
        for name in ("ann", "bob", "shared"):
            boss.post("/v1/memories", name=name)
            boss.post(f"/v1/memories/{name}/read", text=f"Only {name} says wuggle{name}.")
        yield url


def test_without_a_key_nothing_but_the_page_and_health_is_served(locked: str) -> None:
    for token in (None, "ub_", "ub_wrong", "x" * 5000):
        client = Client(locked, token)
        for method, path, body in (
            ("GET", "/v1/memories", None),
            ("GET", "/v1/memories/ann", None),
            ("POST", "/v1/memories", {"name": "new"}),
            ("DELETE", "/v1/memories/ann", None),
            ("POST", "/v1/memories/ann/read", {"text": "x"}),
            ("POST", "/v1/memories/ann/predict", {"text": "x"}),
            ("GET", "/v1/models", None),
            ("POST", "/v1/completions", {"model": "ann", "prompt": "x"}),
        ):
            answer = client.ask(method, path, body)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in ("/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json"):
            assert client.ask("GET", path).status_code == 200


def test_with_anothers_key_a_memory_might_as_well_not_be_there(
    locked: str, tokens: dict[str, str]
) -> None:
    ann = Client(locked, tokens["ann"])
    for name in ("bob", "never-made"):
        for method, path, body in (
            ("GET", f"/v1/memories/{name}", None),
            ("GET", f"/v1/memories/{name}/documents", None),
            ("DELETE", f"/v1/memories/{name}", None),
            ("POST", f"/v1/memories/{name}/read", {"text": "x"}),
            ("POST", f"/v1/memories/{name}/score", {"text": "x"}),
            ("POST", f"/v1/memories/{name}/predict", {"text": "x"}),
            ("POST", f"/v1/memories/{name}/complete", {"text": "x"}),
            ("POST", f"/v1/memories/{name}/forget", {"last": 1}),
            ("POST", "/v1/memories", {"name": name}),
            ("POST", "/v1/completions", {"model": name, "prompt": "x"}),
            ("GET", f"/v1/models/{name}", None),
        ):
            assert ann.refused(403, method, path, body) == "not_allowed"
    assert [one["name"] for one in ann.get("/v1/memories")["memories"]] == ["ann"]
    assert [one["id"] for one in ann.get("/v1/models")["data"]] == ["ann"]
    assert "wuggleann" in ann.ask("POST", "/v1/memories/ann/predict", {"n": 100}).text


def test_a_key_for_reading_does_not_write(locked: str, tokens: dict[str, str]) -> None:
    guest, path = Client(locked, tokens["guest"]), "/v1/memories/shared"
    before = guest.get(path)
    for method, where, body in (
        ("POST", f"{path}/read", {"text": "x"}),
        ("POST", f"{path}/forget", {"last": 1}),
        ("DELETE", path, None),
        ("POST", "/v1/memories", {"name": "shared"}),
    ):
        assert guest.refused(403, method, where, body) == "not_allowed"
    guest.post(f"{path}/predict", text="Only")
    assert guest.get(path) == before


def test_a_removed_key_opens_nothing_at_once(locked: str, root: Path) -> None:
    key, token = Keys(root).add("brief", [], "read")
    client = Client(locked, token)
    client.get("/v1/memories")
    Keys(root).remove(key.id)
    assert client.refused(401, "GET", "/v1/memories") == "bad_key"


def test_no_token_is_on_disk(root: Path, tokens: dict[str, str]) -> None:
    path = root / ".keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = path.read_text()
    for token in tokens.values():
        assert token not in kept
        assert len(token) > 40


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_none_is_refused_and_reaches_no_disk(
    name: str, locked: str, root: Path, tokens: dict[str, str]
) -> None:
    boss = Client(locked, tokens["boss"])
    before = sorted(root.parent.rglob("*"))
    assert boss.refused(422, "POST", "/v1/memories", {"name": name}) == "bad_value"
    body = {"model": name, "prompt": "x"}
    assert boss.refused(422, "POST", "/v1/completions", body) == "bad_value"
    assert sorted(root.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "path", ["../ann", "..%2fann", "%2e%2e/%2e%2e/etc/passwd", ".keys.json", "%00", "a%5c..", "%ff"]
)
def test_a_path_that_leads_elsewhere_is_refused(
    path: str, locked: str, tokens: dict[str, str]
) -> None:
    """Sent as it stands: a client's library would tidy it up."""
    place = urlsplit(locked)
    for prefix in ("/v1/memories/", "/page/", "/v1/models/"):
        with socket.create_connection((place.hostname, place.port)) as line:
            head = f"GET {prefix}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            line.sendall(f"{head}Authorization: Bearer {tokens['boss']}\r\n\r\n".encode())
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        status = int(answer.split()[1])
        assert status in (404, 405, 422)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]


def test_a_broken_body_is_refused(locked: str, tokens: dict[str, str]) -> None:
    boss, path = Client(locked, tokens["boss"]), "/v1/memories/ann/read"
    kind = {"Content-Type": "application/json"}
    for data in (b"", b"{", b"[" * 50_000, b'{"text": "x', b"\xff\xfe", b'{"text": NaN'):
        answer = boss.ask("POST", path, content=data, headers=kind)
        assert answer.status_code in (400, 422)
    wrong: list[Any] = [{"text": 5}, {}, {"text": "x", "other": 1}, [], "x", {"text": "a\0b"}, None]
    for body in wrong:
        data = json.dumps(body).encode()
        assert boss.ask("POST", path, content=data, headers=kind).status_code == 422
    assert boss.ask("POST", path, content=b'{"text": "\\ud800"}', headers=kind).status_code == 422
    for kind in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "multipart/form-data"}):
        assert boss.refused(415, "POST", path, content=b'{"text": "x"}', headers=kind) == "bad_type"
    secret = "".join(["wugg", "lesecret"])
    answer = boss.ask("POST", path, {"text": secret, "document": "x" * 201})
    assert secret not in answer.text


def test_a_gigabyte_is_refused_before_it_is_sent(locked: str, tokens: dict[str, str]) -> None:
    place = urlsplit(locked)
    head = "POST /v1/memories/ann/read HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: Bearer {tokens['boss']}\r\n"
    for more in (f"Content-Length: {1 << 30}\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"):
        with socket.create_connection((place.hostname, place.port)) as line:
            line.sendall((head + more).encode())
            sent = 0
            line.settimeout(0.02)
            answer = b""
            while not answer and sent < 1 << 30:
                try:
                    answer = line.recv(65536)
                except TimeoutError:
                    data = b" " * 16_384
                    chunk = b"%x\r\n%s\r\n" % (len(data), data) if "chunked" in more else data
                    line.sendall(chunk)
                    sent += len(data)
            line.settimeout(10)
            while not answer.endswith(b"}}"):
                answer += line.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
        assert sent < 1_000_000


def test_a_request_that_never_ends_is_ended(tmp_path: Path, model: Pretrained) -> None:
    with living(tmp_path / "s", model, limits=Limits(sending=0.3)) as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=10) as line:
            head = "POST /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            line.sendall(f'{head}Content-Type: application/json\r\n\r\n{{"name"'.encode())
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_text_that_is_too_long_is_refused(tmp_path: Path, model: Pretrained) -> None:
    with living(tmp_path / "s", model, limits=Limits(text=100, ask=50, explained=3)) as url:
        client, path = Client(url), "/v1/memories/a"
        client.post("/v1/memories", name="a")
        assert client.refused(413, "POST", f"{path}/read", {"text": "x " * 51}) == "too_long"
        for verb in ("score", "predict", "complete"):
            assert client.refused(413, "POST", f"{path}/{verb}", {"text": "x" * 51}) == "too_long"
        body: dict[str, Any] = {"model": "a", "prompt": "x" * 51}
        assert client.refused(413, "POST", "/v1/completions", body) == "too_long"
        body = {"model": "a", "prompt": "a b c d", "echo": True, "logprobs": 2}
        assert client.refused(413, "POST", "/v1/completions", body) == "too_long"


def test_there_are_no_more_memories_than_allowed(locked: str, tokens: dict[str, str]) -> None:
    boss = Client(locked, tokens["boss"])
    boss.post("/v1/memories", name="fourth")
    assert boss.refused(409, "POST", "/v1/memories", {"name": "fifth"}) == "full"
    assert boss.refused(409, "POST", "/v1/memories", {"name": "fourth"}) == "exists"
    boss.good("DELETE", "/v1/memories/fourth")


def test_other_sites_and_other_names_for_this_host_are_refused(client: Client) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""):
        answer = client.ask("GET", "/v1/memories", headers={"Host": host})
        assert answer.status_code == 400
    for host in ("localhost", "127.0.0.1:1234", "[::1]:80"):
        assert client.ask("GET", "/v1/memories", headers={"Host": host}).status_code == 200
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Origin": "http://evil.example"}
        assert client.refused(403, "GET", "/v1/memories", headers=headers) == "cross_site"
    answer = client.ask("OPTIONS", "/v1/memories", headers={"Origin": "http://evil.example"})
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_carries_the_pages_protection(client: Client) -> None:
    for path in ("/", "/v1/memories", "/nowhere", "/page/main.js", "/healthz"):
        headers = client.ask("GET", path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


def test_the_log_and_the_figures_say_nothing_that_was_written(
    tmp_path: Path, model: Pretrained, capsys: pytest.CaptureFixture[str]
) -> None:
    from unbounded.serve.observing import Observer

    with living(tmp_path / "s", model, observer=Observer()) as url:
        client = Client(url)
        client.post("/v1/memories", name="diary")
        client.post("/v1/memories/diary/read", text="The wuggle is secret.", document="private")
        client.post("/v1/memories/diary/predict", text="The wuggle")
        client.refused(422, "POST", "/v1/memories/diary/read", {"text": 1, "wuggle": "wuggle"})
        client.refused(404, "POST", "/v1/memories/diary/forget", {"document": "wuggle"})
        figures = client.http.get("/metrics").text
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["route"] for line in lines if line["event"] == "request"][:2] == [
        "/v1/memories",
        "/v1/memories/{name}/read",
    ]
    (read,) = [line for line in lines if line.get("words")]
    assert (read["memory"], read["words"], read["status"]) == ("diary", 6, 200)
    for said in (json.dumps(lines), figures):
        assert "wuggle" not in said
        assert "private" not in said
    assert 'unbounded_words_total{what="read"} 6.0' in figures
    assert "diary" not in figures
