"""The command line on a real cluster: two read at once, a third asks; forget, move, evaluate."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import cluster
from tests.commands import assert_fails, process
from tests.lm.test_training import NETWORK
from tests.serve.running_service import Client, in_thread
from unbounded.corpus import Tokenizer, demo_text, read_sentences
from unbounded.lm import TrainingConfig, load_model, train_model, training_text

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


def test_two_read_at_once_and_a_third_asks(place: Path, engine: str) -> None:
    memory = place / "both"
    common = ["--engine", engine, "--threads", "1", "--json", "-"]
    model = ["--model", str(place / "model")]
    # Who comes first makes the memory.
    first = json_of("read", memory, place / "b.txt", *common[:4], *model)
    readers = [
        subprocess.Popen(
            [sys.executable, "-m", "unbounded", "read", memory, text, *common],
            stdout=subprocess.PIPE,
            text=True,
        )
        for text in (place / "a.txt", place / "b.txt")
    ]
    found = json_of("predict", memory, "the zorble ate the", "--engine", engine)
    grass = next(word for word in found["words"] if word["word"] == "grass")
    assert grass["sources"][0]["document"].endswith("b.txt")
    figures = [json.loads(reader.communicate(timeout=120)[0]) for reader in readers]
    # What was there was not read again.
    assert figures[1]["words"] == 0
    stats = json_of("memory", "stats", memory, "--engine", engine)
    assert stats["entries"] == first["words"] + figures[0]["words"]
    assert stats["documents"] == 2
    assert len(stats["shards"]) == 2
    assert sum(shard["entries"] for shard in stats["shards"]) == stats["entries"]


def test_moved_forgotten_and_looked_after(place: Path, memory: Path, engine: str) -> None:
    wide, on = place / "wide", ("--engine", engine)
    moved, there, gone, well, table, matched, compacted, stats = several(
        ("memory", "move", memory, wide, "--engine", f"{engine}?shards=3"),
        ("memory", "stats", wide, *on),
        ("memory", "forget", wide, "--document", place / "b.txt", *on),
        ("memory", "check", memory, *on),
        ("memory", "export", memory, place / "all.parquet", *on),
        ("memory", "forget", memory, "--matching", "zorble slept", *on),
        ("memory", "compact", memory, *on),
        ("memory", "stats", memory, *on),
    )
    assert moved["entries"] == there["entries"] > 300
    assert len(there["shards"]) == 3
    assert 0 < gone["forgotten"] == there["entries"] - gone["entries"]
    assert well == {"findings": []}
    assert table["words"] == matched["forgotten"] + matched["entries"] == moved["entries"]
    assert matched["forgotten"] == gone["forgotten"]
    assert compacted["bytes"] > 0
    assert (stats["entries"], stats["documents"]) == (matched["entries"], 1)
    assert_fails(
        ["memory", "forget", memory, "--last", "3", *on], "there are no last ones", run=process
    )


def test_the_service_shows_each_shard(place: Path, memory: Path, engine: str) -> None:
    (shards,) = several(("memory", "stats", memory, "--engine", engine))
    held = [shard["entries"] for shard in shards["shards"]]
    with in_thread(place, load_model(place / "model"), engine=engine) as url:
        deadline, text = time.monotonic() + 60, ""
        while 'memory="memory"' not in text:
            assert time.monotonic() < deadline
            time.sleep(0.2)
            text = Client(url).ask("GET", "/metrics").text
    for number, entries in enumerate(held):
        names = f'{{memory="memory",shard="{number}"}}'
        assert f"unbounded_shard_up{names} 1.0" in text
        assert f"unbounded_shard_entries{names} {float(entries)}" in text


def test_evaluate_gives_the_same_on_shards(place: Path, engine: str) -> None:
    common: tuple[object, ...] = ("evaluate", place / "model", place / "a.txt", "--rows")
    common = (*common, "static,unbounded", "--index", "flat", "--threads", 1)
    here, there = several(common, (*common, "--engine", engine))
    assert there["rows"][1]["perplexity"] == pytest.approx(here["rows"][1]["perplexity"], rel=1e-5)


def test_refusals_are_one_line(place: Path) -> None:
    new = ("read", place / "new", place / "a.txt", "--model", place / "model", "--engine")
    assert_fails([*new, "ray://localhost:1"], "no engine answers at ray://localhost:1", run=process)
    assert_fails([*new, "mail://x"], "'mail://x' is no engine; write ray://local", run=process)
