"""Each sentence of the page on security, against a running process."""

import inspect
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.serve.living import ROOT, SECRET, Client, Running, answered, connected, head, process
from tests.serve.test_connections import ended_within
from unbounded.serve.keys import FILE, Keys

JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Running]:
    """Keys come while it runs."""
    root = tmp_path_factory.mktemp("sentences") / "s"
    with process(root, model_folder) as (url, child):
        yield Running(root, url, child)


def sentence_1(running: Running) -> None:
    """Without a key nothing is served but the page, `/healthz`, `/readyz`, `/metrics` and
    `/v1/openapi.json`."""
    page = running.nobody.get("/v1/openapi.json")
    for path, operations in page["paths"].items():
        for method in operations:
            answer = running.nobody.ask(method.upper(), path.replace("{name}", "ann"))
            expected = 200 if path in ("/healthz", "/readyz", "/metrics") else 401
            assert answer.status_code == expected, path
    for path in ("/", "/page/main.js"):
        assert running.nobody.ask("GET", path).status_code == 200


def sentence_2(running: Running) -> None:
    """A key is for some memories or all, to read, or to read and write: make, read into, forget,
    delete."""
    writes = [
        ("POST", "/v1/memories/ann/read", {"text": "x", "document": "x"}),
        ("POST", "/v1/memories/ann/forget", {"document": "x"}),
        ("DELETE", "/v1/memories/ann", None),
        ("POST", "/v1/memories", {"name": "ann"}),
        ("POST", "/v1/memories/ann/read", {"text": f"It is {SECRET}.", "document": "d"}),
    ]
    for method, path, body in writes:
        assert running.guest.refused(403, method, path, body) == "not_allowed"
    for asking in ("score", "predict", "complete"):
        running.guest.post(f"/v1/memories/ann/{asking}", text="It")
    for method, path, body in writes:
        running.ann.good(method, path, body)


def sentence_3(running: Running) -> None:
    """To a key that is not for a memory, it might as well not be there."""
    for name in ("bob", "never"):
        for path, body in ((f"/v1/memories/{name}", None), (f"/v1/models/{name}", None)):
            assert running.ann.refused(403, "GET", path, body) == "not_allowed"
        asked = {"model": name, "prompt": "x"}
        assert running.ann.refused(403, "POST", "/v1/completions", asked) == "not_allowed"
    assert [one["name"] for one in running.ann.get("/v1/memories")["memories"]] == ["ann"]


def sentence_4(running: Running, model_folder: Path, tmp_path: Path) -> None:
    """On loopback keys are on as soon as there is one, in a service that runs too."""
    with process(tmp_path / "s", model_folder) as (url, _):
        nobody = Client(url)
        assert nobody.get("/v1/memories") == {"memories": []}
        token = Keys(tmp_path / "s").add("ann", [], "read")[1]
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
        assert Client(url, token).get("/v1/memories") == {"memories": []}


def sentence_5(running: Running) -> None:
    """A removed key opens nothing from the next request on."""
    key, token = Keys(running.root).add("brief", [], "read")
    client = Client(running.url, token)
    client.get("/v1/memories")
    Keys(running.root).remove(key.id)
    assert client.refused(401, "GET", "/v1/memories") == "bad_key"


def sentence_6(running: Running, model_folder: Path, tmp_path: Path) -> None:
    """When the last key is removed nobody is served, after a restart either, until one is added or
    `.keys.json` is deleted."""
    root = tmp_path / "s"
    key, _ = Keys(root).add("ann", [], "read")
    with process(root, model_folder) as (url, child):
        Keys(root).remove(key.id)
        assert Client(url).refused(401, "GET", "/v1/memories") == "no_key"
        child.send_signal(signal.SIGTERM)
        child.wait(30)
    with pytest.raises(AssertionError, match="no key is left"), process(root, model_folder):
        pass
    (root / FILE).unlink()
    with process(root, model_folder) as (url, _):
        assert Client(url).get("/v1/memories") == {"memories": []}


def sentence_7(running: Running, model_folder: Path, tmp_path: Path) -> None:
    """Elsewhere than on loopback the service does not start without a key, unless told
    `--without-keys`."""
    (tmp_path / FILE).write_text('{"keys": []}')
    for root in (tmp_path / "s", tmp_path):
        command = ["serve", str(root), "--model", str(model_folder), "--host", "0.0.0.0"]
        ran = subprocess.run(
            [sys.executable, "-m", "unbounded", *command, "--port", "0"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert ran.returncode == 1
        assert "has no keys" in ran.stderr


def sentence_8(running: Running) -> None:
    """Of a token, `.keys.json` (mode 600) holds a SHA-256 hash; nothing else does."""
    assert stat.S_IMODE((running.root / FILE).stat().st_mode) == 0o600
    for path in running.root.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not any(token.encode() in data for token in running.tokens.values())


def sentence_9(running: Running) -> None:
    """Host, site, key, right, type and size are looked at before a body is read."""
    boss, guest = (f"Authorization: Bearer {running.tokens[who]}" for who in ("boss", "guest"))
    length = "Content-Length: 30000000"
    for headers, status in (
        ((JSON, boss, length, "Sec-Fetch-Site: cross-site"), 403),
        ((JSON, length), 401),
        ((JSON, guest, length), 403),
        ((boss, length), 415),
        ((JSON, boss, "Content-Length: 300000000"), 413),
    ):
        with connected(running.url) as line:
            line.sendall(head("POST", "/v1/memories/ann/read", *headers) + b'{"te')
            assert answered(line)[0] == status


def sentence_10(running: Running, model_folder: Path, tmp_path: Path) -> None:
    """Where keys are off, only addresses, `localhost`, the machine's own name and those of `--host`
    and `--allow-host` are taken for `Host`: no page elsewhere can have its own name lead here."""
    options = ("--host", "127.0.0.2", "--allow-host", "box.example")
    with process(tmp_path / "s", model_folder, *options) as (url, _):
        _check_hosts(url, "127.0.0.2", "box.example:80")
        assert Client(url).get("/v1/memories") == {"memories": []}
    everywhere = ("--host", "0.0.0.0", "--without-keys")
    with process(tmp_path / "s", model_folder, *everywhere) as (url, _):
        _check_hosts(url.replace("0.0.0.0", "127.0.0.1"), "10.0.0.7")


def _check_hosts(url: str, *more: str) -> None:
    ours = ["localhost", "LOCALHOST:1", "[::1]:80", "127.0.0.1:8000", socket.gethostname(), *more]
    theirs = ["evil.example", "[::1]evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "[::1"]
    theirs += ["evil.com:80", "127.0.0.1:80@evil.com", "::1", "[127.0.0.1]", "a b", "1.2.3", ""]
    for hosts, status in ((ours, 200), (theirs, 400)):
        for host in hosts:
            with connected(url) as line:
                line.sendall(head("GET", "/v1/memories", host=host))
                assert answered(line)[0] == status, host


def sentence_11(running: Running) -> None:
    """Other sites are refused by `Sec-Fetch-Site`, what is not JSON by its type, and CORS headers
    are never sent."""
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Origin": "http://evil.example"}
        assert running.boss.refused(403, "GET", "/v1/memories", headers=headers) == "cross_site"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": kind}
        path = "/v1/memories/ann/predict"
        assert running.boss.refused(415, "POST", path, content=b"{}", headers=headers) == "bad_type"
    for method in ("GET", "OPTIONS"):
        answer = running.boss.ask(method, "/v1/memories", headers={"Origin": "http://x.example"})
        assert not [name for name in answer.headers if name.startswith("access-control")]


def sentence_12(running: Running) -> None:
    """The page's Content-Security-Policy allows scripts and styles from the service only, none
    inline."""
    policy = running.nobody.http.get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["script-src"]) == ("'none'", "'self'")
    assert rules["style-src"] == "'self'"


def sentence_13(running: Running) -> None:
    """Names of memories are letters, digits, `-` and `_`, with single dots between them; no path is
    made of what a request says."""
    before = sorted(running.root.parent.rglob("*"))
    for name in ("../up", "..", ".hidden", "a/b", "", "ä", "a b", "a..b", "a.", "x" * 65):
        running.boss.refused(422, "POST", "/v1/memories", {"name": name})
    bearer = f"Authorization: Bearer {running.tokens['boss']}"
    for path in ("..%2fup", "%2e%2e", ".keys.json", "%00", "a%5c.."):
        with connected(running.url) as line:
            line.sendall(head("GET", f"/v1/memories/{path}", bearer))
            assert answered(line)[0] in (404, 405, 422)
    assert sorted(running.root.parent.rglob("*")) == before


def sentence_14(running: Running, model_folder: Path, tmp_path: Path) -> None:
    """What was written is never in the log, nor in errors."""
    log = tmp_path / "log"
    with log.open("w") as out:
        command = ["serve", str(tmp_path / "s"), "--model", str(model_folder), "--port", "0"]
        child = subprocess.Popen(
            [sys.executable, "-m", "unbounded", *command],
            stderr=out,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        until = time.monotonic() + 60
        while "started" not in log.read_text() and time.monotonic() < until:
            time.sleep(0.1)
        client = Client(log.read_text().split()[0].rstrip("/"))
        client.post("/v1/memories", name="m")
        body = {"text": f"It is {SECRET}.", "document": SECRET}
        client.post("/v1/memories/m/read", **body)
        for path, wrong in (("read", {"text": "x", SECRET: SECRET}), ("forget", {"document": "x"})):
            answer = client.ask("POST", f"/v1/memories/m/{path}", wrong | {"matching": SECRET})
            assert answer.status_code in (404, 422)
            assert SECRET not in answer.text
        client.ask("POST", "/v1/memories/m/predict", {"text": SECRET, "n": SECRET})
    finally:
        child.terminate()
        child.wait(30)
    assert "/v1/memories/{name}/predict" in log.read_text()
    assert SECRET not in log.read_text()


def sentence_15(running: Running) -> None:
    """What is deleted or forgotten is in no file when the answer comes; if that is interrupted, a
    deletion is finished at the next start, a forgetting when it is asked for again."""
    # The second half, at every step, is in test_deletion.py.
    running.boss.post("/v1/memories", name="gone")
    words = ("wuggleforgotten", "wuggledeleted")
    for word in words:
        running.boss.post("/v1/memories/gone/read", text=f"It is {word}.", document=word)
    running.boss.post("/v1/memories/gone/forget", document=words[0])
    assert not _on_disk(running.root, words[0])
    assert _on_disk(running.root, words[1])
    running.boss.good("DELETE", "/v1/memories/gone")
    assert not _on_disk(running.root, words[1])


def _on_disk(root: Path, word: str) -> bool:
    return any(path.is_file() and word.encode() in path.read_bytes() for path in root.rglob("*"))


def sentence_16(running: Running, tmp_path: Path) -> None:
    """A memory that is a link, or has one in it, is not deleted (409, `is_link`): its words are
    elsewhere."""
    running.boss.post("/v1/memories", name="there")
    running.boss.post("/v1/memories/there/read", text="It is there.")
    link = running.root / "link"
    link.symlink_to(running.root / "there")
    assert running.boss.refused(409, "DELETE", "/v1/memories/link") == "is_link"
    link.unlink()
    assert running.boss.get("/v1/memories/there")["entries"] == 5


def sentence_17(running: Running) -> None:
    """A connection that has sent no whole head of a request for 10 seconds is closed, and beyond
    512 of them, or half of the descriptors, whoever has been idle for longest."""
    # The second half, with real descriptors, is in test_connections.py.
    with connected(running.url) as line:
        line.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert not ended_within(line, 5)
        assert ended_within(line, 15)


def sentence_18(running: Running, whole: bool) -> None:
    """An answer of which nobody has taken 16 KB for 20 seconds ends its connection."""
    if not whole:
        pytest.skip("half a minute: under make torture; in test_connections.py with less patience")
    before = len(list(Path(f"/proc/{running.child.pid}/fd").iterdir()))
    with connected(running.url) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        line.sendall(head("GET", "/v1/openapi.json") * 200)
        time.sleep(12)
        assert len(list(Path(f"/proc/{running.child.pid}/fd").iterdir())) > before
        time.sleep(18)
        assert len(list(Path(f"/proc/{running.child.pid}/fd").iterdir())) <= before


def sentence_19(running: Running) -> None:
    """An answer has at most 256 bytes for each byte of its request, and 32 MB: of a word 100
    characters are shown, of documents and days the last 1,000."""
    # Whatever else is asked is in test_schema.py, and longer words in test_answers.py.
    word = "\U00010330" * 5000
    running.boss.post("/v1/memories", name="long")
    running.boss.post("/v1/memories/long/read", text=f"{word}\n" * 9)
    answer = running.boss.ask("POST", "/v1/memories/long/predict", {"n": 100, "sources": 20})
    assert len(answer.content) < 32 << 20
    assert "\U00010330" * 101 not in answer.text
    text = "." * 3000
    scored = running.boss.ask("POST", "/v1/memories/long/score", {"text": text, "shares": True})
    assert len(scored.content) < 256 * len(text) + (32 << 20)


def sentence_20(running: Running) -> None:
    """A request that asks has at most 1.3 MB, one that reads 32 MB, and requests and answers under
    way 256 MB together: beyond, 413 and 429."""
    bearer = f"Authorization: Bearer {running.tokens['boss']}"
    for path, length in (("predict", 1_300_000), ("read", (32 << 20) + 1)):
        with connected(running.url) as line:
            asked = head("POST", f"/v1/memories/ann/{path}", JSON, bearer)
            line.sendall(asked[:-2] + f"Content-Length: {length}\r\n\r\n".encode())
            assert answered(line)[0] == 413
    asked = head("POST", "/v1/memories/ann/read", JSON, bearer, "Content-Length: 33000000")
    data = b'{"text": "' + b"a" * 32_000_000
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(running.url)) for _ in range(9)]
        for line in lines:
            try:
                line.sendall(asked + data)
            except (BrokenPipeError, ConnectionResetError):
                continue
        assert running.nobody.get("/healthz") == {"status": "alive"}
        assert running.boss.ask("GET", "/v1/memories").status_code in (200, 429)
        status = answered(lines[-1])[0]
        assert status == 429
        rss = Path(f"/proc/{running.child.pid}/status").read_text()
        assert int(re.findall(r"VmRSS:\s+(\d+)", rss)[0]) < 1_300_000


def sentence_21(running: Running) -> None:
    """Whatever is asked, `/healthz` answers within a second."""
    # All routes, with all that they take, are in test_latency.py.
    body = {"model": "ann", "prompt": [[1] * 100_000] * 16, "max_tokens": 1}
    data = json.dumps(body).encode()
    statuses: list[int] = []

    def ask() -> None:
        headers = {"Content-Type": "application/json"}
        asked = {"content": data, "headers": headers}
        statuses.append(running.boss.ask("POST", "/v1/completions", **asked).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    waited: list[float] = []
    while thread.is_alive() or not waited:
        began = time.monotonic()
        running.nobody.get("/healthz")
        waited.append(time.monotonic() - began)
    assert max(waited) < 1
    assert statuses == [413]


TESTS = {
    " ".join((test.__doc__ or "").split()): test
    for name, test in list(globals().items())
    if name.startswith("sentence_")
}


def test_each_sentence_has_its_test() -> None:
    page = (ROOT / "docs" / "service.md").read_text()
    section = page.partition("## Security, sentence by sentence")[2].partition("\n## ")[0]
    assert list(TESTS) == re.findall(r"^- (.*)$", section, re.MULTILINE)


@pytest.mark.parametrize("sentence", list(TESTS), ids=lambda text: text[:40])
def test_the_sentence_is_true(
    sentence: str, running: Running, model_folder: Path, tmp_path: Path, whole: bool
) -> None:
    given: dict[str, Any] = {"running": running, "model_folder": model_folder}
    given |= {"tmp_path": tmp_path, "whole": whole}
    test = TESTS[sentence]
    test(**{name: given[name] for name in inspect.signature(test).parameters})
