"""What was acknowledged is there: after kill -9 under load, after a stop during a read."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

import unbounded
from benchmarks.serve import bench_serve
from tests.serve.living import ROOT, Client, living, process
from unbounded.errors import SettingError
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys
from unbounded.serve.running import chosen_keys

LONG = "\n".join(f"Sentence {n} is about the number {n % 7} of the people." for n in range(9000))


def command(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_killed_under_load_nothing_acknowledged_is_lost_and_nobody_sees_anothers_words(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    figures = bench_serve(model_folder, users=8, memories=4, seconds=8.0, threads=2, direct=0.5)
    # Two minutes with 32 users are for 'python -m benchmarks serve'.
    assert figures["acknowledged"] > 20
    assert figures["interrupted"] > 0
    assert figures["lost"] == 0
    assert figures["strange"] == 0
    assert figures["latency_ms"].keys() == {"read", "score", "predict"}
    assert figures["ratio"] > 0


def test_a_signal_ends_a_long_read_at_a_block_and_loses_nothing(
    model_folder: Path, tmp_path: Path
) -> None:
    root, seen = tmp_path / "s", []
    with process(root, model_folder, "--grace", "1") as (url, child):
        client = Client(url)
        client.post("/v1/memories", name="a")
        client.post("/v1/memories/a/read", text="It rains.", document="short")
        begun = threading.Event()

        def read() -> None:
            try:
                body = {"text": LONG, "document": "long", "stream": True}
                for event in Client(url).events("/v1/memories/a/read", **body):
                    seen.append(event)
                    begun.set()
            except httpx2.TransportError:
                pass

        reader = threading.Thread(target=read)
        reader.start()
        assert begun.wait(30)
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) in (0, -signal.SIGTERM)
        reader.join()
        assert seen[-1].get("event") != "done"
    with unbounded.open(root / "a") as memory:
        told = max(event.get("entries", 4) for event in seen)
        assert told <= len(memory) < 9000 * 12
        assert (len(memory) - 4) % 512 == 0
        assert memory.check(deep=True) == []
        assert memory.events == []
    # The memory knows its model.
    ran = command("predict", root / "a", "sentence", "-n", 1, "--json", "-")
    assert len(json.loads(ran.stdout)["words"]) == 1


def test_a_second_service_on_the_same_memories_is_refused_and_says_why(
    model: Pretrained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with living(tmp_path / "s", model) as one:
        Client(one).post("/v1/memories", name="a")
        with living(tmp_path / "s", model) as other:
            code = Client(other).refused(503, "GET", "/v1/memories/a")
        assert code == "memory_unavailable"
        assert f"written by process {os.getpid()}" in capsys.readouterr().err
        Client(one).get("/v1/memories/a")


def test_keys_are_made_listed_and_removed(tmp_path: Path) -> None:
    root = tmp_path / "s"
    ran = command("keys", "add", root, "--label", "ann", "--memory", "notes", "--json", "-")
    made = json.loads(ran.stdout)
    assert made["right"] == "read"
    token = command("keys", "add", root, "--write").stdout.strip()
    assert token.startswith("ub_")
    listed = command("keys", "list", root).stdout.splitlines()
    assert [line.split()[1] for line in listed] == ["read", "write"]
    assert listed[0].endswith("notes  ann")
    assert token not in command("keys", "list", root, "--json", "-").stdout
    assert command("keys", "remove", root, made["id"]).returncode == 0
    (left,) = json.loads(command("keys", "list", root, "--json", "-").stdout)["keys"]
    assert left["memories"] == ["*"]
    for words, said in (
        (("remove", root, "nobody"), "there is no key 'nobody'"),
        (("add", root, "--memory", "../up"), "is no name for a memory"),
    ):
        ran = command("keys", *words)
        assert ran.returncode == 1
        assert said in ran.stderr


def test_elsewhere_than_on_loopback_it_wants_keys_or_to_be_told_not_to(tmp_path: Path) -> None:
    root = tmp_path / "s"
    ran = command("serve", root, "--model", tmp_path, "--host", "0.0.0.0", "--port", 0)
    assert ran.returncode == 1
    assert "has no keys; make one" in ran.stderr
    for host in ("127.0.0.1", "::1", "localhost", "127.0.0.9"):
        keys = chosen_keys(root, host, without_keys=False)
        assert keys is not None
        assert not keys.on
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"):
        with pytest.raises(SettingError, match="has no keys"):
            chosen_keys(root, host, without_keys=False)
        assert chosen_keys(root, host, without_keys=True) is None
    Keys(root).add("", [], "read")
    for host in ("127.0.0.1", "0.0.0.0"):
        keys = chosen_keys(root, host, without_keys=False)
        assert keys is not None
        assert len(keys.all()) == 1
    Keys(root).remove(Keys(root).all()[0].id)
    # Who has removed the last key has not opened the door.
    keys = chosen_keys(root, "127.0.0.1", without_keys=False)
    assert keys is not None
    assert keys.on
    with pytest.raises(SettingError, match="has no keys"):
        chosen_keys(root, "0.0.0.0", without_keys=False)
