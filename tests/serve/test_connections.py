"""Connections that ask for nothing, or take nothing, are ended; the others are served meanwhile."""

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running_service import (
    Client,
    answered,
    connected,
    head,
    in_process,
    in_thread,
)
from unbounded.lm import Pretrained
from unbounded.memory import Memory
from unbounded.serve.app import _listen
from unbounded.serve.limits import Limits

BRIEF = Limits(idle=0.6, taking=1.5, connections=20)


def ended_within(line: socket.socket, seconds: float) -> bool:
    """Whether the service ends the connection in time."""
    line.settimeout(seconds)
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_who_comes_as_soon_as_the_address_is_known_is_not_turned_away() -> None:
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        pass


@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "], ids=len
)
def test_half_a_head_is_not_waited_for(sent: bytes, tmp_path: Path, model: Pretrained) -> None:
    with in_thread(tmp_path / "s", model, limits=BRIEF) as url, connected(url) as line:
        line.sendall(sent)
        assert ended_within(line, 30)


def test_a_head_that_comes_letter_by_letter_is_not_waited_for(
    tmp_path: Path, model: Pretrained
) -> None:
    with in_thread(tmp_path / "s", model, limits=BRIEF) as url, connected(url) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        began = time.monotonic()
        try:
            while time.monotonic() - began < 60:
                line.sendall(b"x")
                time.sleep(0.05)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert time.monotonic() - began < 30


def test_between_two_requests_a_connection_is_kept_and_then_ended(
    tmp_path: Path, model: Pretrained
) -> None:
    with in_thread(tmp_path / "s", model, limits=Limits(idle=2.0)) as url, connected(url) as line:
        began = time.monotonic()
        while time.monotonic() - began < 2.5:
            line.sendall(head("GET", "/healthz"))
            assert answered(line)[0] == 200
            time.sleep(0.3)
        assert ended_within(line, 30)


def test_what_takes_its_time_inside_is_waited_for(
    tmp_path: Path, model: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Memory.predict_after

    def slow(*given: Any, **more: Any) -> Any:
        time.sleep(2.5)
        return real(*given, **more)

    monkeypatch.setattr(Memory, "predict_after", slow)
    with in_thread(tmp_path / "s", model, limits=Limits(idle=1.0, taking=1.0)) as url:
        path, began = Client(url).make("a", "It rains."), time.monotonic()
        assert Client(url).post(f"{path}/predict", text="It")["words"]
        assert time.monotonic() - began > 2.5


def test_an_answer_that_nobody_takes_ends_its_connection(tmp_path: Path, model: Pretrained) -> None:
    with in_thread(tmp_path / "s", model, limits=BRIEF) as url:
        page = len(Client(url).http.get("/v1/openapi.json").content)
        # More than the system's own buffers hold, asked for in one breath.
        times = 12_000_000 // page
        with connected(url) as slow, connected(url) as deaf:
            for line in (slow, deaf):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                line.sendall(head("GET", "/v1/openapi.json") * times)
            # Who is slow and takes some is served to the end.
            assert _taken(slow, pause=0.01) >= times * page
            time.sleep(3)
            assert _taken(deaf, pause=0) < times * page


def _taken(line: socket.socket, pause: float) -> int:
    """Bytes until there are no more."""
    seen = 0
    try:
        while part := line.recv(60_000):
            seen += len(part)
            time.sleep(pause)
    except ConnectionResetError:
        pass
    return seen


def test_beyond_the_most_whoever_was_idle_for_longest_goes(
    tmp_path: Path, model: Pretrained
) -> None:
    with in_thread(tmp_path / "s", model, limits=Limits(connections=20, idle=60.0)) as url:
        lines = [connected(url) for _ in range(60)]
        try:
            lines[-1].sendall(head("GET", "/healthz"))
            assert answered(lines[-1])[0] == 200
            assert Client(url).get("/healthz") == {"status": "alive"}
            assert sum(ended_within(line, 5) for line in lines[:40]) >= 39
        finally:
            for line in lines:
                line.close()


def test_a_service_with_few_descriptors_is_not_silenced(tmp_path: Path, model_folder: Path) -> None:
    with in_process(tmp_path / "s", model_folder, descriptors=(256, 256)) as process:
        lines = [connected(process.url) for _ in range(300)]
        try:
            for line in lines[::2]:
                line.sendall(b"GET /")
            client = Client(process.url)
            path = client.make("a", "The zorble ate the grass.")
            assert client.post(f"{path}/predict", text="The zorble")["words"]
            assert process.descriptors() < 230
        finally:
            for line in lines:
                line.close()
