"""What was acknowledged is there: after kill -9 under load, after a stop during a read."""

import io
import json
import os
import signal
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from benchmarks.serve import bench_serve
from tests.serve import running_service
from tests.serve.conftest import Run
from tests.serve.running_service import ROOT, Client, in_process, in_thread, opened, sentences
from unbounded.lm import Pretrained
from unbounded.serve.observing import Observer


def test_killed_under_load_nothing_acknowledged_is_lost_and_nobody_sees_anothers_words(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    figures = bench_serve(model_folder, users=8, memories=4, seconds=3.0, threads=2, direct=0.3)
    # Two minutes with 32 users are for 'python -m benchmarks serve'.
    assert figures["acknowledged"] > 10
    assert figures["interrupted"] > 0
    assert figures["lost"] == 0
    assert figures["strange"] == 0
    assert figures["latency_ms"].keys() == {"read", "score", "predict"}
    assert figures["ratio"] > 0


def test_a_signal_ends_a_long_read_at_a_block_and_loses_nothing(
    model_folder: Path, tmp_path: Path, run: Run
) -> None:
    root, seen = tmp_path / "s", []
    with in_process(root, model_folder, "--grace", "1") as process:
        client = Client(process.url)
        path = client.make("a", "It rains.", "short")
        begun = threading.Event()

        def read() -> None:
            try:
                body = {"text": sentences(9000), "document": "long", "stream": True}
                for event in Client(process.url).events(f"{path}/read", **body):
                    seen.append(event)
                    begun.set()
            except httpx2.TransportError:
                pass

        reader = threading.Thread(target=read)
        reader.start()
        assert begun.wait(30)
        process.child.send_signal(signal.SIGTERM)
        assert process.child.wait(30) in (0, -signal.SIGTERM)
        reader.join()
        assert seen[-1].get("event") != "done"
    with opened(root / "a") as memory:
        told = max(event.get("entries", 4) for event in seen)
        assert told <= len(memory) < 9000 * 12
        assert (len(memory) - 4) % 512 == 0
        assert memory.check(deep=True) == []
        assert memory.events == []
    # The memory knows its model.
    engine = [] if running_service.ENGINE is None else ["--engine", running_service.ENGINE]
    printed = run("predict", root / "a", "sentence", "-n", 1, "--json", "-", *engine)[1]
    assert len(json.loads(printed)["words"]) == 1


def test_a_service_whose_log_nobody_takes_goes_on(
    model: Pretrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = io.StringIO()
    closed.close()
    with in_thread(tmp_path / "s", model, observer=Observer()) as url:
        monkeypatch.setattr(sys, "stderr", closed)
        assert Client(url).make("a", "It rains.")
        monkeypatch.undo()


def test_a_second_service_on_the_same_memories_is_refused_and_says_why(
    model: Pretrained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_thread(tmp_path / "s", model) as one:
        path = Client(one).make("a")
        with in_thread(tmp_path / "s", model) as other:
            code = Client(other).refused(503, "GET", path)
        assert code == "memory_unavailable"
        assert f"written by process {os.getpid()}" in capsys.readouterr().err
        Client(one).get(path)
