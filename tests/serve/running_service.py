"""A service that runs while a test talks to it: in a thread, or in a process of its own."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn

import unbounded
from unbounded.lm import Pretrained
from unbounded.serve.app import create_app, server_config
from unbounded.serve.keys import Keys
from unbounded.serve.observing import Observer

ROOT = Path(__file__).parents[2]
SECRET = "wugglesecret"
JSON = "Content-Type: application/json"
CLIENTS: list[httpx2.Client] = []
"""Closed when all tests are done."""
ENGINE: str | None = None
"""Where the keys of all memories lie, if not in the process of the service."""
BATCH = 16
"""Words that shards are handed together; as it comes, the last thousand are on none."""
COMMAND = f"""
from unbounded.cli import main
from unbounded.cluster import sharded
sharded.BATCH = {BATCH}
main()
"""


def sentences(count: int) -> str:
    """A text of so many lines, twelve words each with the sentence end."""
    return "\n".join(
        f"Sentence {n} is about the number {n % 7} of the people." for n in range(count)
    )


class Client:
    """Asks a service; every error must have the body that all errors have."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=60, trust_env=False)
        CLIENTS.append(self.http)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        given = {} if body is None else {"json": body}
        answer = self.http.request(method, path, **given, **more)
        if answer.status_code >= 400:
            error = answer.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert error["message"]
        return answer

    def get(self, path: str, **more: Any) -> Any:
        return self.good("GET", path, **more)

    def post(self, path: str, **body: Any) -> Any:
        return self.good("POST", path, body)

    def good(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = self.ask(method, path, body, **more)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def refused(self, status: int, method: str, path: str, body: Any = None, **more: Any) -> str:
        answer = self.ask(method, path, body, **more)
        assert answer.status_code == status, answer.text
        code: str = answer.json()["error"]["code"]
        return code

    def make(self, name: str, text: str = "", document: str = "d") -> str:
        """A memory that has read a text; its path. What a first run of the test left goes."""
        self.ask("DELETE", f"/v1/memories/{name}")
        self.post("/v1/memories", name=name)
        if text:
            self.post(f"/v1/memories/{name}/read", text=text, document=document)
        return f"/v1/memories/{name}"

    def events(self, path: str, **body: Any) -> Iterator[Any]:
        with self.http.stream("POST", path, json=body) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    data = line.removeprefix("data: ")
                    yield data if data == "[DONE]" else json.loads(data)


def opened(folder: Path, model: Pretrained | None = None) -> unbounded.Memory:
    """A memory of a service, opened by the library."""
    return unbounded.open(folder, model, engine=ENGINE)


@contextmanager
def in_thread(root: Path, model: Pretrained, **more: Any) -> Iterator[str]:
    """The address of a service in a thread, which stops as a signal would stop it."""
    root.mkdir(exist_ok=True)
    app = create_app(root, model, **{"observer": Observer(quiet=True), "engine": ENGINE, **more})
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(app))
    died: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[listening])
        except BaseException as error:
            died.append(error)

    thread = threading.Thread(target=run, name="service")
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
            assert thread.is_alive()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()
        if died:
            raise AssertionError("the service has ended by itself") from died[0]


@dataclass
class Process:
    """A service in a process of its own, and what it has said so far."""

    url: str
    child: "subprocess.Popen[str]"
    said: list[str] = field(default_factory=list)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.child.pid}/fd").iterdir()))

    def megabytes(self) -> float:
        """Resident."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def child(*words: object) -> "subprocess.Popen[str]":
    """A command in a process of its own; `python` is this one."""
    return subprocess.Popen(
        [sys.executable if word == "python" else str(word) for word in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


@contextmanager
def in_process(
    root: Path, model: Path, *more: str, descriptors: tuple[int, int] | None = None
) -> Iterator[Process]:
    """The installed command in a process of its own."""
    few = [] if descriptors is None else ["prlimit", "--nofile={}:{}".format(*descriptors)]
    serve = ("python", "-c", COMMAND, "serve", root, "--model", model)
    on = [] if ENGINE is None else ["--engine", ENGINE]
    started = Process("", child(*few, *serve, "--port", "0", "--threads", "2", *on, *more))
    lines = started.child.stderr
    assert lines is not None
    reader = threading.Thread(target=lambda: started.said.extend(lines))
    try:
        while not (line := lines.readline()).startswith("http://"):
            assert line, started.said
            started.said.append(line)
        started.url = line.strip().rstrip("/")
        reader.start()
        _wait_for(started.url)
        yield started
    finally:
        started.child.kill()
        started.child.wait()
        if reader.is_alive():
            reader.join()
        started.child.communicate()


def _wait_for(url: str) -> None:
    """Until it is ready, half a minute at most."""
    for _ in range(600):
        try:
            if httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the service never became ready")


def connected(url: str) -> socket.socket:
    """A bare connection to a service."""
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=30)


def answered(line: socket.socket) -> tuple[int, bytes]:
    """The status and body of the next answer on a bare connection."""
    response = HTTPResponse(line)
    response.begin()
    return response.status, response.read()


def head(method: str, path: str, *headers: str, host: str = "127.0.0.1") -> bytes:
    """The head of a request, as it stands."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()


def exchanged(url: str, sent: bytes) -> tuple[int, Any]:
    """The status, and the code of the error, of what is answered to these bytes."""
    with connected(url) as line:
        line.sendall(sent)
        status, body = answered(line)
    return status, json.loads(body).get("error", {}).get("code")


def bearer(token: str) -> str:
    """The header that carries a key."""
    return f"Authorization: Bearer {token}"


def on_disk(root: Path, word: str = SECRET) -> bool:
    """Whether a word is in any file, or a name."""
    data = word.encode()
    return any(
        data in os.fsencode(path) or (path.is_file() and data in path.read_bytes())
        for path in root.rglob("*")
    )


class Running:
    """A service in a process of its own, with keys that came while it ran."""

    def __init__(self, root: Path, process: Process) -> None:
        self.root, self.process, self.url = root, process, process.url
        self.nobody = Client(process.url)
        self.before_keys = self.nobody.get("/v1/memories")
        scopes = {"boss": ([], "write"), "ann": (["ann"], "write"), "guest": (["ann"], "read")}
        self.tokens = {name: Keys(root).add(name, *given)[1] for name, given in scopes.items()}
        self.boss, self.ann, self.guest = (Client(self.url, self.tokens[who]) for who in scopes)
        for name in ("ann", "bob"):
            self.boss.make(name, f"It is {SECRET}.")
        # Half a head, sent now: the other sentences need the time until it is ended.
        self.half, self.half_ended = connected(self.url), 0.0
        self.half.sendall(b"GET / HTTP/1.1\r\nX: ")
        self.watch = threading.Thread(target=self._wait_for_half, args=(time.monotonic(),))
        self.watch.start()

    def _wait_for_half(self, began: float) -> None:
        with self.half:
            assert self.half.recv(1) == b""
        self.half_ended = time.monotonic() - began
