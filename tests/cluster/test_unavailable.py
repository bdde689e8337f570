"""A real cluster is stopped and started again under readers that go on; one is killed meanwhile."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cluster.nodes import cluster, free_port
from tests.cluster.test_commands import json_of, make_model, several
from tests.commands import assert_fails, process
from unbounded.cluster.queue import some_waits

pytest.importorskip("ray")

SENTENCE = "The zorble ate the grass of meadow number {}.\n"
WORDS = 11
"""Of such a sentence, its end included."""


@contextmanager
def reading(
    memory: Path, engine: str, log: Path, when_away: str = "queue"
) -> Iterator[subprocess.Popen[str]]:
    """`unbounded read` from a pipe, going on when shards are unavailable, or stopping."""
    words = ["read", memory, "-", "--engine", engine, "--when-away", when_away, "--patience", "20"]
    words += ["--document", when_away]
    command = [sys.executable, "-m", "unbounded", *map(str, words), "--surprise", "--threads", "1"]
    with (
        log.open("w") as file,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            bufsize=1,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def tell(process: "subprocess.Popen[str]", log: Path, first: int, count: int) -> None:
    """Write sentences, and wait until each is durable; a reader that ends has said why."""
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(first, first + count):
        process.stdin.write(SENTENCE.format(number))
        process.stdin.flush()
        heard = process.stdout.readline()
        assert f"meadow number {number}." in heard, log.read_text()


def test_a_cluster_that_goes_and_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_model(tmp_path)
    memory, port = tmp_path / "memory", free_port()
    engine = f"ray://127.0.0.1:{port}"
    queued = ("--engine", engine, "--when-away", "queue", "--patience", "20", "--threads", 1)
    new = ["read", memory, tmp_path / "b.txt", "--model", tmp_path / "model"]
    # A memory is made on its engine or not at all.
    assert_fails([*new, *queued], "no engine answers at", run=process)
    logs = [tmp_path / "one.log", tmp_path / "two.log", tmp_path / "stopping.log"]
    with ExitStack() as readers:
        with cluster(nodes=1, port=port, join=False):
            first = json_of(*new, *queued)
            assert first["waiting"] == 0
            one = readers.enter_context(reading(memory, engine, logs[0]))
            stopping = readers.enter_context(reading(memory, engine, logs[2], "stop"))
            tell(stopping, logs[2], 0, 1)
            tell(one, logs[0], 0, 2)
        # All of the cluster has ended, the reader goes on; the other says so and ends.
        assert stopping.stdin is not None
        stopping.stdin.write(SENTENCE.format(1))
        stopping.stdin.flush()
        tell(one, logs[0], 2, 2)
        assert "all 2 shards are unavailable" in logs[0].read_text()
        one.kill()
        assert stopping.wait(timeout=120) == 1
        (said,) = logs[2].read_text().splitlines()
        assert said.startswith("Error: ")
    assert some_waits(memory)
    # In the other way, as is the default: one line.
    assert_fails([*new, "--engine", engine], "no engine answers at", run=process)
    with reading(memory, engine, logs[1]) as two:
        # Away from the beginning.
        tell(two, logs[1], 0, 2)
        assert "all 2 shards are unavailable (no engine answers at" in logs[1].read_text()
        with cluster(nodes=1, port=port, join=False):
            number = 2
            while "are back, and told" not in logs[1].read_text():
                tell(two, logs[1], number, 1)
                number += 1
            assert two.stdin is not None
            two.stdin.close()
            assert two.wait(timeout=120) == 0
            assert not some_waits(memory)
            drained, stats = several(
                *(("memory", what, memory, "--engine", engine) for what in ("drain", "stats"))
            )
    # Nothing is lost that was told to be durable, and nothing is there twice.
    assert drained == {"entries": stats["entries"], "waited": False, "left": False}
    assert stats["entries"] == first["words"] + WORDS * (1 + 4 + number)
    assert stats["documents"] == 4
