"""The command line and the service on a real cluster: read, ask, forget, undo, move, evaluate."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import cluster
from tests.commands import assert_fails, process
from tests.lm.test_training import NETWORK
from tests.serve.running_service import Client, in_thread
from unbounded.corpus import Tokenizer, read_sentences, training_text
from unbounded.demo import demo_text
from unbounded.lm import TrainingConfig, load_model, train_model

pytest.importorskip("ray")

# One worker starts one cluster for all of them.
pytestmark = pytest.mark.xdist_group("ray-commands")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cluster")
    make_model(place)
    return place


def make_model(place: Path) -> None:
    """A tiny model and two texts."""
    lines = list(islice(demo_text("sotu", years=range(1950, 1960)), 300))
    tokenizer = Tokenizer()
    text = training_text(read_sentences(lines, tokenizer), 4_000)
    config = TrainingConfig(epochs=1, streams=8)
    for _ in train_model(place / "model", text, tokenizer, NETWORK, config):
        pass
    (place / "a.txt").write_text("\n".join(line.text for line in lines[:60]))
    (place / "b.txt").write_text("The zorble ate the grass.\nThe zorble slept.\n" * 20)


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with cluster(nodes=1) as made:
        yield f"ray://{made.address}"


def json_of(*words: object) -> dict[str, Any]:
    ran = process(*words, "--json", "-")
    assert ran.returncode == 0, ran.stderr
    value: dict[str, Any] = json.loads(ran.stdout)
    return value


def several(*commands: tuple[object, ...]) -> list[dict[str, Any]]:
    """The same for some commands after each other in one process, which joins once: faster."""
    given = [[*map(str, words), "--json", "-"] for words in commands]
    script = "import unbounded.cli as c, sys, json\nfor w in json.load(sys.stdin): "
    script += "sys.modules['unbounded.cli.main'].app(w, standalone_mode=False)"
    ran = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(given), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    values, rest, decoder = [], ran.stdout, json.JSONDecoder()
    while rest := rest.strip():
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:]
    assert len(values) == len(commands)
    return values


@pytest.fixture(scope="module")
def memory(place: Path, engine: str) -> Path:
    """A memory on two shards that has read both texts."""
    on = ("--engine", engine, "--threads", 1, "--model", place / "model")
    several(*(("read", place / "memory", place / name, *on) for name in ("b.txt", "a.txt")))
    return place / "memory"


def test_one_reads_while_another_asks(place: Path, memory: Path, engine: str) -> None:
    command = [sys.executable, "-m", "unbounded", "read", str(memory), "-", "--engine", engine]
    reader = subprocess.Popen(
        [*command, "--surprise", "--threads", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write("The zorble ate the clover.\n")
    reader.stdin.flush()
    assert "clover" in reader.stdout.readline()
    # One writer, as on disk; who asks sees what was acknowledged.
    assert_fails(
        ["read", memory, place / "a.txt", "--engine", engine], "one writer is all", run=process
    )
    found = json_of("predict", memory, "the zorble ate the", "--engine", engine)
    words = {word["word"]: word for word in found["words"]}
    assert {"grass", "clover"} <= set(words)
    assert words["grass"]["sources"][0]["document"].endswith("b.txt")
    reader.stdin.close()
    assert reader.wait(timeout=120) == 0


def test_a_cluster_without_a_token_is_refused(
    memory: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine.startswith("ray://127."):
        pytest.skip("this machine has no address that others could reach")
    monkeypatch.delenv("RAY_AUTH_MODE")
    told = "has no token: whoever can reach it can run programs on it"
    assert_fails(["predict", memory, "the", "--engine", engine], told, run=process)


def test_moved_forgotten_and_looked_after(place: Path, memory: Path, engine: str) -> None:
    wide, alone, on = place / "wide", place / "alone", ("--engine", engine)
    moved, there, gone, undone, back, well, table, compacted, stats = several(
        ("memory", "move", memory, wide, "--engine", f"{engine}?shards=3"),
        ("memory", "stats", wide, *on),
        ("memory", "forget", wide, "--document", place / "b.txt", *on),
        ("memory", "undo", wide, *on),
        ("memory", "move", wide, alone),
        ("memory", "check", wide, "--deep", *on),
        ("memory", "export", alone, place / "all.jsonl"),
        ("memory", "compact", wide, *on),
        ("memory", "stats", wide, *on),
    )
    assert moved["entries"] == there["entries"] == back["entries"] == table["words"] > 300
    assert len(there["shards"]) == 3
    assert 0 < gone["forgotten"] == there["entries"] - gone["entries"]
    assert undone["entries"] == stats["entries"] == there["entries"]
    assert well == {"findings": []}
    assert compacted["bytes"] > 0
    assert all(shard["host"] and shard["process"] for shard in stats["shards"])
    assert_fails(
        ["memory", "stats", wide], "has its keys on 3 shards; give the engine", run=process
    )


def test_the_service_reads_asks_and_shows_each_shard(place: Path, engine: str) -> None:
    root = place / "served"
    root.mkdir(exist_ok=True)
    with in_thread(root, load_model(place / "model"), engine=f"{engine}?shards=2") as url:
        client = Client(url)
        path = client.make("notes", "The zorble ate the grass.\n" * 250, "zoo")
        found = client.post(f"{path}/predict", text="the zorble ate the")
        assert found["words"][0]["word"] == "grass"
        assert found["words"][0]["sources"][0]["document"] == "zoo"
        text = client.ask("GET", "/metrics").text
        identity = json.loads((root / "notes" / "format.json").read_text())["id"]
        assert "notes" not in text
        for number in range(2):
            names = f'{{memory="{identity}",shard="{number}"}}'
            assert f"unbounded_shard_up{names} 1.0" in text
            assert f"unbounded_shard_entries{names} 864.0" in text
    assert json.loads((root / "notes" / "format.json").read_text())["shards"] == 2


def test_evaluate_gives_the_same_on_shards(place: Path, engine: str) -> None:
    common: tuple[object, ...] = ("evaluate", place / "model", place / "a.txt", "--rows")
    common = (*common, "static,unbounded", "--index", "flat", "--threads", 1)
    here, there = several(common, (*common, "--engine", engine))
    assert there["rows"][1]["perplexity"] == pytest.approx(here["rows"][1]["perplexity"], rel=1e-5)


def test_refusals_are_one_line(place: Path) -> None:
    new = ("read", place / "new", place / "a.txt", "--model", place / "model", "--engine")
    assert_fails([*new, "ray://localhost:1"], "no engine answers at ray://localhost:1", run=process)
    assert_fails([*new, "mail://x"], "'mail://x' is no engine; write ray://local", run=process)
