"""Across two hosts: a cable is pulled while it reads, a host is killed; nothing lost or twice."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.hosts import PORT, Host, two_hosts, why_not
from tests.commands import process

pytest.importorskip("ray")

WHY_NOT = why_not()
pytestmark = [
    pytest.mark.xdist_group("ray-hosts"),
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]

SENTENCE = "The zorble ate the grass of meadow number {}, and slept until the rain came back.\n"


@contextmanager
def reading(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as reader:
        try:
            yield reader
        finally:
            reader.kill()


def tell(reader: "subprocess.Popen[str]", first: int, count: int) -> None:
    assert reader.stdin is not None
    for number in range(first, first + count):
        reader.stdin.write(SENTENCE.format(number))
    reader.stdin.flush()


def hear(reader: "subprocess.Popen[str]", count: int) -> list[float]:
    assert reader.stdout is not None
    found = []
    for number in range(count):
        line = reader.stdout.readline()
        assert line, f"ended with {reader.wait()} after {number} sentences"
        assert line.startswith("{"), line
        found.append(json.loads(line)["nats"])
    return found


def networks(pids: list[int]) -> set[str]:
    """The namespaces that processes are in."""
    return {str(Path(f"/proc/{pid}/ns/net").readlink()) for pid in pids}


def shards_on(hosts: tuple[Host, Host]) -> list[int]:
    """How many shards run on each host."""
    counts = []
    for host in hosts:
        names = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in host.processes()]
        counts.append(sum(name.startswith(b"ray::Shard") for name in names))
    return counts


def test_a_cable_is_pulled_and_a_host_is_killed_while_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever token this user has.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    read = [sys.executable, "-m", "unbounded", "read"]
    how = ["-", "--surprise", "--threads", "1"]
    with reading([*read, str(tmp_path / "local"), *how]) as alone:
        tell(alone, 0, 300)
        expected = hear(alone, 300)
    with two_hosts() as hosts:
        first, second = hosts
        engine = f"ray://{first.address}:{PORT}"
        on = ["--engine", f"{engine}?shards=2"]
        command = first.command(*read, tmp_path / "memory", *how, *on)
        with reading(command) as reader:
            tell(reader, 0, 100)
            found = hear(reader, 100)
            # Each on a host of its own.
            assert shards_on(hosts) == [1, 1]
            assert len(networks([first.processes()[0], second.processes()[0]])) == 2
            second.cable("down")
            tell(reader, 100, 100)
            time.sleep(5)
            second.cable("up")
            found += hear(reader, 100)
            second.kill()
            tell(reader, 200, 100)
            found += hear(reader, 100)
            assert shards_on(hosts) == [2, 0]
            assert reader.stdin is not None
            reader.stdin.close()
            assert reader.wait(timeout=120) == 0
        assert found == pytest.approx(expected, abs=1e-3)
        checked = subprocess.run(
            first.command(*read[:3], "memory", "check", tmp_path / "memory", "--engine", engine),
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "all is well" in checked.stdout
    # The journal has every sentence, once.
    ran = process("memory", "backup", tmp_path / "memory", tmp_path / "copy", "--json", "-")
    here = process("memory", "backup", tmp_path / "local", tmp_path / "copy2", "--json", "-")
    assert json.loads(ran.stdout)["words"] == json.loads(here.stdout)["words"] > 5000
