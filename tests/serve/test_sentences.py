"""Each sentence of the page on security, against a running process."""

import inspect
import json
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running_service import (
    JSON,
    ROOT,
    SECRET,
    Client,
    Running,
    answered,
    bearer,
    child,
    connected,
    exchanged,
    head,
    in_process,
    on_disk,
)
from unbounded.serve.guard import POLICY
from unbounded.serve.keys import FILE, Keys

SEEN = ("/healthz", "/readyz", "/metrics")
BAD_NAMES = ["../up", "..", ".hidden", "a/b", "a\\b", "", "ä", "a b", "a..b", "a.", "x" * 65]
BAD_NAMES += ["%2e%2e", "a\n", "~"]
BAD_PATHS = ["../ann", "..%2fup", "%2e%2e", "%2e%2e/%2e%2e/etc/passwd", ".keys.json", "%00"]
BAD_PATHS += ["a%5c..", "%ff"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("sentences") / "s"
    with in_process(root, model_folder) as process:
        started = Running(root, process)
        yield started
        started.watch.join()


def sentence_1(running: Running) -> None:
    """Without a key nothing is served but the page, `/docs`, `/healthz`, `/readyz`, `/metrics` and
    `/v1/openapi.json`."""
    # With wrong keys, before the body has come: in test_refusals.py.
    page = running.nobody.get("/v1/openapi.json")
    for path, operations in page["paths"].items():
        for method in operations:
            answer = running.nobody.ask(method.upper(), path.replace("{name}", "ann"))
            assert answer.status_code == (200 if path in SEEN else 401), path
            assert answer.headers.get("www-authenticate", "Bearer") == "Bearer"
    for path in ("/", "/docs", "/page/main.js"):
        assert running.nobody.ask("GET", path).status_code == 200
    for token in ("ub_", "x" * 5000):
        assert Client(running.url, token).refused(401, "GET", "/v1/memories") == "bad_key"


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
    before = running.guest.get("/v1/memories/ann")
    for method, path, body in writes:
        assert running.guest.refused(403, method, path, body) == "not_allowed"
    for asking in ("score", "predict", "complete"):
        running.guest.post(f"/v1/memories/ann/{asking}", text="It")
    assert running.guest.get("/v1/memories/ann") == before
    for method, path, body in writes:
        running.ann.good(method, path, body)


def sentence_3(running: Running) -> None:
    """To a key that is not for a memory, it might as well not be there."""
    for name in ("bob", "never"):
        path = f"/v1/memories/{name}"
        for where in (path, f"{path}/documents", f"/v1/models/{name}"):
            assert running.ann.refused(403, "GET", where) == "not_allowed"
        assert running.ann.refused(403, "DELETE", path) == "not_allowed"
        for where, body in (
            (f"{path}/read", {"text": "x"}),
            (f"{path}/score", {"text": "x"}),
            (f"{path}/predict", {"text": "x"}),
            (f"{path}/complete", {"text": "x"}),
            (f"{path}/forget", {"last": 1}),
            ("/v1/memories", {"name": name}),
            ("/v1/completions", {"model": name, "prompt": "x"}),
        ):
            assert running.ann.refused(403, "POST", where, body) == "not_allowed"
    assert [one["name"] for one in running.ann.get("/v1/memories")["memories"]] == ["ann"]
    assert [one["id"] for one in running.ann.get("/v1/models")["data"]] == ["ann"]
    assert SECRET in running.ann.ask("POST", "/v1/memories/ann/predict", {"n": 100}).text


def sentence_4(running: Running) -> None:
    """On loopback keys are on as soon as there is one, in a service that runs too."""
    assert running.before_keys == {"memories": []}
    assert running.nobody.refused(401, "GET", "/v1/memories") == "no_key"
    assert running.boss.get("/v1/memories")["memories"]


def sentence_5(running: Running) -> None:
    """A removed key opens nothing from the next request on."""
    key, token = Keys(running.root).add("brief", [], "read")
    client = Client(running.url, token)
    client.get("/v1/memories")
    Keys(running.root).remove(key.id)
    assert client.refused(401, "GET", "/v1/memories") == "bad_key"


def sentence_6(model_folder: Path, tmp_path: Path) -> None:
    """When the last key is removed nobody is served, after a restart either, until one is added or
    `.keys.json` is deleted."""
    root = tmp_path / "s"
    Keys(root).remove(Keys(root).add("ann", [], "read")[0].id)
    with in_process(root, model_folder) as process:
        assert "no key is left" in process.said[0]
        nobody = Client(process.url)
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
        key, token = Keys(root).add("ann", [], "read")
        assert Client(process.url, token).get("/v1/memories") == {"memories": []}
        Keys(root).remove(key.id)
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
        (root / FILE).unlink()
        assert nobody.get("/v1/memories") == {"memories": []}


def sentence_7(model_folder: Path, tmp_path: Path) -> None:
    """Elsewhere than on loopback the service does not start without a key, unless told
    `--without-keys`."""
    # Told that, it starts in the sentence on hosts.
    (tmp_path / FILE).write_text('{"keys": []}')
    everywhere = ("--model", model_folder, "--host", "0.0.0.0", "--port", 0)
    for started in [
        child("python", "-m", "unbounded", "serve", root, *everywhere)
        for root in (tmp_path / "s", tmp_path)
    ]:
        assert "has no keys" in started.communicate(timeout=60)[1]
        assert started.returncode == 1


def sentence_8(running: Running) -> None:
    """Of a token, `.keys.json` (mode 600) holds a SHA-256 hash; nothing else does."""
    assert stat.S_IMODE((running.root / FILE).stat().st_mode) == 0o600
    for token in running.tokens.values():
        assert len(token) > 40
        assert not on_disk(running.root, token)


def sentence_9(running: Running) -> None:
    """Host, site, key, right, type and size are looked at before a body is read."""
    # Every route is in test_refusals.py, and the host, where keys are off, in the next sentence.
    boss, guest = bearer(running.tokens["boss"]), bearer(running.tokens["guest"])
    length = "Content-Length: 30000000"
    for headers, status in (
        ((JSON, boss, length, "Sec-Fetch-Site: cross-site"), 403),
        ((JSON, length), 401),
        ((JSON, guest, length), 403),
        ((boss, length), 415),
        ((JSON, boss, "Content-Length: 300000000"), 413),
    ):
        sent = head("POST", "/v1/memories/ann/read", *headers) + b'{"te'
        assert exchanged(running.url, sent)[0] == status


def sentence_10(model_folder: Path, tmp_path: Path) -> None:
    """Where keys are off, only addresses, `localhost`, the machine's own name and those of `--host`
    and `--allow-host` are taken for `Host`: no page elsewhere can have its own name lead here."""
    ours = ["localhost", "LOCALHOST:1", "[::1]:80", "127.0.0.1:8000", "10.0.0.7", "box.example:80"]
    ours += ["127.0.0.2", "0.0.0.0", socket.gethostname()]
    theirs = ["evil.example", "[::1]evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "[::1"]
    theirs += ["evil.com:80", "127.0.0.1:80@evil.com", "::1", "[127.0.0.1]", "a b", "1.2.3", ""]
    options = ("--host", "0.0.0.0", "--without-keys", "--allow-host", "box.example")
    with in_process(tmp_path / "s", model_folder, *options) as process:
        url = process.url.replace("0.0.0.0", "127.0.0.1")
        for hosts, status in ((ours, 200), (theirs, 400)):
            for host in hosts:
                assert exchanged(url, head("GET", "/v1/memories", host=host))[0] == status, host
        sent = head("POST", "/v1/memories", JSON, "Content-Length: 30000", host="evil.com") + b"{"
        assert exchanged(url, sent) == (400, "bad_host")


def sentence_11(running: Running) -> None:
    """Other sites are refused by `Sec-Fetch-Site`, what is not JSON by its type, and CORS headers
    are never sent."""
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Origin": "http://evil.example"}
        assert running.boss.refused(403, "GET", "/v1/memories", headers=headers) == "cross_site"
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {} if kind is None else {"Content-Type": kind}
        path = "/v1/memories/ann/predict"
        assert running.boss.refused(415, "POST", path, content=b"{}", headers=headers) == "bad_type"
    for method, status in (("GET", 200), ("OPTIONS", 405)):
        answer = running.boss.ask(method, "/v1/memories", headers={"Origin": "http://x.example"})
        assert answer.status_code == status
        assert not [name for name in answer.headers if name.startswith("access-control")]


def sentence_12(running: Running) -> None:
    """The page's Content-Security-Policy allows scripts and styles from the service only, none
    inline."""
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert (rules["default-src"], rules["script-src"]) == ("'none'", "'self'")
    assert rules["style-src"] == "'self'"
    assert "unsafe" not in POLICY
    for path in ("/", "/v1/memories", "/nowhere", "/page/main.js", "/healthz"):
        headers = running.boss.ask("GET", path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def sentence_13(running: Running) -> None:
    """Names of memories are letters, digits, `-` and `_`, with single dots between them; no path is
    made of what a request says."""
    before = sorted(running.root.parent.rglob("*"))
    for name in BAD_NAMES:
        for path, body in (
            ("/v1/memories", {"name": name}),
            ("/v1/completions", {"model": name, "prompt": "x"}),
        ):
            assert running.boss.refused(422, "POST", path, body) == "bad_value"
    # Sent as they stand: a client's library would tidy them up.
    for path in BAD_PATHS:
        for prefix in ("/v1/memories/", "/page/", "/v1/models/"):
            sent = head("GET", f"{prefix}{path}", bearer(running.tokens["boss"]))
            status, code = exchanged(running.url, sent)
            assert status in (404, 405, 422)
            assert code
    assert sorted(running.root.parent.rglob("*")) == before


def sentence_14(running: Running) -> None:
    """What was written is never in the log, nor in errors."""
    path = running.boss.make("diary")
    running.boss.post(f"{path}/read", text=f"It is {SECRET}.", document=SECRET)
    for verb, wrong in (
        ("read", {"text": "x", SECRET: SECRET}),
        ("read", {"text": 1, "matching": SECRET}),
        ("forget", {"document": "x", "matching": SECRET}),
        ("forget", {"document": SECRET * 2}),
        ("predict", {"text": SECRET, "n": SECRET}),
    ):
        answer = running.boss.ask("POST", f"{path}/{verb}", wrong)
        assert answer.status_code in (404, 422)
        assert SECRET not in answer.text
    figures = running.nobody.http.get("/metrics").text
    until = time.monotonic() + 30
    while '{name}/predict", "status": 422' not in running.process.said[-1]:
        assert time.monotonic() < until
        time.sleep(0.05)
    lines = [json.loads(line) for line in running.process.said]
    reads = [line for line in lines if line.get("route", "").endswith("/read")]
    (read,) = [line for line in reads if (line.get("memory"), line["status"]) == ("diary", 200)]
    assert read["words"] == 5
    assert 'unbounded_words_total{what="read"}' in figures
    for said in (json.dumps(lines), figures):
        assert SECRET not in said
        assert not any(token in said for token in running.tokens.values())
    assert "diary" not in figures


def sentence_15(running: Running) -> None:
    """What is deleted or forgotten is in no file when the answer comes; if that is interrupted, a
    deletion is finished at the next start, a forgetting when it is asked for again."""
    # The second half, at every step, is in test_deletion.py.
    forgotten, deleted = "wuggleforgotten", "wuggledeleted"
    path = running.boss.make("gone", f"It is {forgotten}.", forgotten)
    running.boss.post(f"{path}/read", text=f"It is {deleted}.", document=deleted)
    running.boss.post(f"{path}/forget", document=forgotten)
    assert not on_disk(running.root, forgotten)
    assert on_disk(running.root, deleted)
    running.boss.good("DELETE", path)
    assert not on_disk(running.root, deleted)


def sentence_16(running: Running) -> None:
    """A memory that is a link, or has one in it, is not deleted (409, `is_link`): its words are
    elsewhere."""
    # With a link in it: in test_deletion.py.
    running.boss.make("there", "It is there.")
    link = running.root / "link"
    link.symlink_to(running.root / "there")
    assert running.boss.refused(409, "DELETE", "/v1/memories/link") == "is_link"
    link.unlink()
    assert running.boss.get("/v1/memories/there")["entries"] == 5


def sentence_17(running: Running) -> None:
    """A connection that has sent no whole head of a request for 10 seconds is closed, and beyond
    512 of them, or half of the descriptors, whoever has been idle for longest."""
    # The second half, with real descriptors, is in test_connections.py.
    running.watch.join(30)
    assert 10 <= running.half_ended < 20


def sentence_18(running: Running, whole: bool) -> None:
    """An answer of which nobody has taken 16 KB for 20 seconds ends its connection."""
    if not whole:
        pytest.skip("half a minute: under make torture; in test_connections.py with less patience")
    before = running.process.descriptors()
    with connected(running.url) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        line.sendall(head("GET", "/v1/openapi.json") * 200)
        time.sleep(12)
        assert running.process.descriptors() > before
        time.sleep(18)
        assert running.process.descriptors() <= before


def sentence_19(running: Running) -> None:
    """An answer has at most 256 bytes for each byte of its request, and 32 MB: of a word 100
    characters are shown, of documents and days the last 1,000."""
    # Whatever else is asked is in test_schema.py, and longer words in test_answers.py.
    path = running.boss.make("long", ("\U00010330" * 5000 + "\n") * 9)
    answer = running.boss.ask("POST", f"{path}/predict", {"n": 100, "sources": 20})
    assert len(answer.content) < 32 << 20
    assert "\U00010330" * 101 not in answer.text
    text = "." * 3000
    scored = running.boss.ask("POST", f"{path}/score", {"text": text, "shares": True})
    assert len(scored.content) < 256 * len(text) + (32 << 20)


def sentence_20(running: Running) -> None:
    """A request that asks has at most 1.3 MB, one that reads 32 MB, and requests and answers under
    way 256 MB together: beyond, 413 and 429."""
    key = bearer(running.tokens["boss"])
    for path, length in (("predict", 1_300_000), ("read", (32 << 20) + 1)):
        sent = head("POST", f"/v1/memories/ann/{path}", JSON, key, f"Content-Length: {length}")
        assert exchanged(running.url, sent)[0] == 413
    sent = head("POST", "/v1/memories/ann/read", JSON, key, "Content-Length: 33000000")
    data = b'{"text": "' + b"a" * 32_000_000
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(running.url)) for _ in range(9)]
        for line in lines:
            try:
                line.sendall(sent + data)
            except (BrokenPipeError, ConnectionResetError):
                continue
        assert running.nobody.get("/healthz") == {"status": "alive"}
        assert running.boss.ask("GET", "/v1/memories").status_code in (200, 429)
        assert answered(lines[-1])[0] == 429
        assert running.process.megabytes() < 1_300


def sentence_21(running: Running) -> None:
    """Whatever is asked, `/healthz` answers within a second."""
    # All routes, with all that they take, are in test_latency.py.
    body = {"model": "ann", "prompt": [[1] * 100_000] * 16, "max_tokens": 1}
    asked = {"content": json.dumps(body).encode(), "headers": {"Content-Type": "application/json"}}
    codes: list[str] = []
    thread = threading.Thread(
        target=lambda: codes.append(running.boss.refused(413, "POST", "/v1/completions", **asked))
    )
    thread.start()
    waited: list[float] = []
    while thread.is_alive() or not waited:
        began = time.monotonic()
        running.nobody.get("/healthz")
        waited.append(time.monotonic() - began)
    assert max(waited) < 1
    assert codes == ["too_large"]


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
