"""A service that runs while a test talks to it: in a thread, or in a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn

from unbounded.lm import Pretrained
from unbounded.serve.app import create_app
from unbounded.serve.connections import configured
from unbounded.serve.keys import Keys
from unbounded.serve.observing import Observer

ROOT = Path(__file__).parents[2]
SECRET = "wugglesecret"
CLIENTS: list[httpx2.Client] = []
"""Closed when all tests are done."""


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

    def events(self, path: str, **body: Any) -> Iterator[Any]:
        with self.http.stream("POST", path, json=body) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    data = line.removeprefix("data: ")
                    yield data if data == "[DONE]" else json.loads(data)


@contextmanager
def living(root: Path, model: Pretrained, **more: Any) -> Iterator[str]:
    """The address of a service in a thread, which stops as a signal would stop it."""
    root.mkdir(exist_ok=True)
    app = create_app(root, model, observer=more.pop("observer", Observer(quiet=True)), **more)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(configured(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
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


@contextmanager
def process(
    root: Path, model: Path, *more: str, descriptors: tuple[int, int] | None = None
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The installed command in a process of its own, and its address."""
    options = ("--port", "0", "--threads", "2", *more)
    few = [] if descriptors is None else ["prlimit", f"--nofile={descriptors[0]}:{descriptors[1]}"]
    command = [sys.executable, "-m", "unbounded", "serve", str(root), "--model", str(model)]
    child = subprocess.Popen(
        [*few, *command, *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert child.stderr is not None
    url = child.stderr.readline().strip()
    said: list[str] = []

    def drain() -> None:
        assert child.stderr is not None
        said.extend(child.stderr)

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        assert url.startswith("http://"), url
        wait_for(url)
        yield url.rstrip("/"), child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
        child.wait()
        reader.join()
        child.stderr.close()


def wait_for(url: str) -> None:
    """Until it is ready, half a minute at most."""
    for _ in range(300):
        try:
            if httpx2.get(f"{url.rstrip('/')}/readyz", trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
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


class Running:
    """A service in a process of its own, with keys, and what it said."""

    def __init__(self, root: Path, url: str, child: "subprocess.Popen[str]") -> None:
        self.root, self.url, self.child = root, url, child
        keys = Keys(root)
        asked = {"boss": ([], "write"), "ann": (["ann"], "write"), "guest": (["ann"], "read")}
        self.tokens = {name: keys.add(name, *given)[1] for name, given in asked.items()}
        self.nobody = Client(url)
        self.boss, self.ann, self.guest = (Client(url, self.tokens[name]) for name in asked)
        for name in ("ann", "bob"):
            self.boss.post("/v1/memories", name=name)
            self.boss.post(f"/v1/memories/{name}/read", text=f"It is {SECRET}.", document="d")
