"""Across three hosts, one of them an hour off: whatever happens, nothing is lost, nothing twice.

Slow and lossy cables, one that is pulled in the middle of a block, nodes that are restarted one
after the other while it reads; and who has no token is turned away.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.hosts import PORT, Host, some_hosts, why_not
from tests.commands import process

pytest.importorskip("ray")

WHY_NOT = why_not()
pytestmark = [
    pytest.mark.xdist_group("ray-hosts"),
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]

SENTENCE = "The zorble ate the grass of meadow number {}, and slept until the rain came back.\n"


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec*);
int clock_gettime(clockid_t which, struct timespec* now) {
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(which, now);
  if (which == CLOCK_REALTIME) now->tv_sec += 3600;
  return failed;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* out) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out) *out = exact.tv_sec;
  return exact.tv_sec;
}
"""
"""A clock that is an hour off, to be loaded before the system's."""


def clock_an_hour_off(folder: Path) -> dict[str, str]:
    """What to have in the environment for it; nothing where there is no compiler."""
    compiler, library = shutil.which("cc") or shutil.which("gcc"), folder / "clock.so"
    if compiler is None:
        return {}
    (folder / "clock.c").write_text(CLOCK)
    built = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "clock.c"), "-ldl"]
    subprocess.run(built, check=True)
    return {"LD_PRELOAD": str(library)}


@contextmanager
def reading(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
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


def shards_on(hosts: list[Host]) -> list[int]:
    """How many shards run on each host."""
    counts = []
    for host in hosts:
        names = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in host.processes()]
        counts.append(sum(name.startswith(b"ray::Shard") for name in names))
    return counts


def test_whatever_happens_to_hosts_while_it_reads_nothing_is_lost_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = [sys.executable, "-m", "unbounded", "read"]
    how = ["-", "--surprise", "--threads", "1"]
    with reading([*read, str(tmp_path / "local"), *how]) as alone:
        tell(alone, 0, 500)
        expected = hear(alone, 500)
    # Tokens, as docs/cluster.md has it: of a user of all three hosts.
    monkeypatch.setenv("HOME", str(tmp_path))
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    token = subprocess.run([*ray, "get-auth-token", "--generate"], capture_output=True, check=True)
    assert len(token.stdout) > 20
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    off = clock_an_hour_off(tmp_path)
    with some_hosts(3) as hosts:
        first, second, third = hosts
        first.start_node()
        second.start_node(first)
        third.start_node(first, **off)
        # Ray passes over a node that is not ready yet.
        time.sleep(5)
        monkeypatch.delenv("RAY_AUTH_MODE")
        now = third.run(sys.executable, "-c", "import time; print(time.time())", **off)
        late = float(now) - time.time()
        assert not off or 3500 < late < 3700
        engine = f"ray://{first.address}:{PORT}"
        check_that_a_token_is_wanted(first, engine, tmp_path / "nobody")
        command = first.command(*read, tmp_path / "memory", *how, "--engine", f"{engine}?shards=3")
        with reading(command) as reader:
            tell(reader, 0, 100)
            found = hear(reader, 100)
            # Each on a host of its own.
            assert shards_on(hosts) == [1, 1, 1]
            second.cable(delay=0.02, loss=0.01)
            third.cable(delay=0.005, loss=0.01)
            tell(reader, 100, 100)
            found += hear(reader, 100)
            third.cable(up=False)
            tell(reader, 200, 100)
            time.sleep(5)
            third.cable()
            found += hear(reader, 100)
            # Nodes go and come back, one after the other.
            for number, host in ((300, second), (400, third)):
                host.kill()
                tell(reader, number, 50)
                found += hear(reader, 50)
                assert shards_on([host]) == [0]
                host.start_node(first, RAY_AUTH_MODE="token")
                tell(reader, number + 50, 50)
                found += hear(reader, 50)
            assert reader.stdin is not None
            reader.stdin.close()
            assert reader.wait(timeout=120) == 0
        assert found == pytest.approx(expected, abs=1e-3)
        look = [*read[:3], "memory", "check", tmp_path / "memory", "--engine", engine]
        assert "all is well" in first.run(*look)
    # The journal has every sentence, once.
    ran = process("memory", "backup", tmp_path / "memory", tmp_path / "copy", "--json", "-")
    here = process("memory", "backup", tmp_path / "local", tmp_path / "copy2", "--json", "-")
    assert json.loads(ran.stdout)["words"] == json.loads(here.stdout)["words"] > 8000


def check_that_a_token_is_wanted(host: Host, engine: str, home: Path) -> None:
    """Who has none is told in one line what to do, and who has another."""
    home.mkdir()
    for has in ("a", "another"):
        words = ("read", home / "m", "-", "--engine", engine)
        ran = subprocess.run(
            host.command(sys.executable, "-m", "unbounded", *words),
            capture_output=True,
            text=True,
            check=False,
            input="The zorble slept.\n",
            env={**os.environ, "HOME": str(home), "COLUMNS": "200"},
        )
        assert ran.returncode == 1
        *others, line = ran.stderr.strip().splitlines()
        assert f"wants {has} token; copy the file ~/.ray/auth_token" in line
        assert all(other.startswith("no --model was given") for other in others)
        (home / ".ray").mkdir(exist_ok=True)
        (home / ".ray" / "auth_token").write_text("0" * 64)
