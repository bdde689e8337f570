"""What is deleted or forgotten is in no file: killed at any step, when it is asked for again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unbounded
from tests.serve.living import ROOT, Client, living
from unbounded.lm import Pretrained
from unbounded.serve.deletion import GONE, delete, finish

SECRET = b"wugglesecret"

# Ends the process, as kill -9 would, at the nth call that changes a folder.
CHILD = """
import os, sys
from pathlib import Path
count = 0
def dying(real):
    def call(*given, **more):
        global count
        count += 1
        if count == int(sys.argv[1]):
            os._exit(9)
        return real(*given, **more)
    return call
def arm():
    for name in ("rename", "replace", "unlink", "remove", "rmdir", "fsync"):
        setattr(os, name, dying(getattr(os, name)))
"""

DELETES = (
    CHILD
    + """
from unbounded.serve.deletion import delete
arm()
delete(Path(sys.argv[2]), "m")
"""
)

FORGETS = (
    CHILD
    + """
import unbounded
with unbounded.open(sys.argv[2] + "/m") as memory:
    arm()
    memory.forget(document="private")
    if memory.stats()["forgotten"]:
        memory.compact()
    os._exit(0)
"""
)


def killed_at(step: int, script: str, root: Path) -> bool:
    """Whether the process got so far that it was killed there."""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(step), str(root)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode in (0, 9), ran.stderr
    return ran.returncode == 9


def on_disk(root: Path) -> bool:
    """Whether the secret is in any file, or a name."""
    return any(
        SECRET in os.fsencode(path) or (path.is_file() and SECRET in path.read_bytes())
        for path in root.rglob("*")
    )


@pytest.fixture
def filled(tmp_path: Path, model: Pretrained) -> Path:
    root = tmp_path / "root"
    with unbounded.open(root / "m", model) as memory:
        memory.read("The zorble ate the grass.", "public")
        memory.read(f"Only ann says {SECRET.decode()}.", "private")
    assert on_disk(root)
    return root


def test_a_deletion_that_was_killed_is_finished_at_the_next_start(
    filled: Path, tmp_path: Path, whole: bool
) -> None:
    step, kills = 1, 0
    while True:
        root = tmp_path / f"try{step}"
        shutil.copytree(filled, root)
        if not killed_at(step, DELETES, root):
            assert not on_disk(root)
            break
        kills += 1
        there = (root / "m").is_dir()
        assert finish(root) == []
        assert not list(root.glob(f"{GONE}*"))
        if there:
            # Never begun, never acknowledged: it can be asked for again.
            delete(root, "m")
        assert not on_disk(root)
        # A sample: the first steps, then every fourth.
        step += 1 if whole or step < 4 else 4
    assert kills > 4


@pytest.mark.torture
def test_forgetting_that_was_killed_is_finished_when_it_is_asked_for_again(
    filled: Path, tmp_path: Path, model: Pretrained, whole: bool
) -> None:
    step, kills = 1, 0
    while True:
        root = tmp_path / f"try{step}"
        shutil.copytree(filled, root)
        if not killed_at(step, FORGETS, root):
            break
        kills += 1
        with living(root, model) as url:
            answer = Client(url).ask("POST", "/v1/memories/m/forget", {"document": "private"})
            # Gone already, or gone now; and a memory is whole after each.
            assert answer.status_code in (200, 404)
            assert Client(url).get("/v1/memories/m")["entries"] == 7
        assert not on_disk(root)
        step += 1 if whole else 5
    assert kills > 2


def test_an_interrupted_deletion_goes_when_the_service_starts(
    filled: Path, model: Pretrained
) -> None:
    (filled / "m").rename(filled / f"{GONE}m-1")
    with living(filled, model) as url:
        assert Client(url).get("/v1/memories") == {"memories": []}
        assert not on_disk(filled)


def test_what_could_not_be_taken_away_is_not_called_deleted(
    filled: Path, model: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.unlink

    def failing(path: Any, *given: Any, **more: Any) -> None:
        if "journal" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        real(path, *given, **more)

    with living(filled, model) as url:
        client = Client(url)
        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", failing)
            assert client.refused(503, "DELETE", "/v1/memories/m") == "memory_unavailable"
        assert client.refused(404, "GET", "/v1/memories/m") == "no_memory"
    with living(filled, model):
        assert not on_disk(filled)


@pytest.mark.parametrize("inside", [False, True])
def test_a_link_is_not_called_deleted(
    inside: bool, filled: Path, tmp_path: Path, model: Pretrained
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if inside:
        journal = next((filled / "m").glob("journal*"))
        journal.rename(elsewhere)
        journal.symlink_to(elsewhere)
    else:
        (filled / "m").rename(elsewhere)
        (filled / "m").symlink_to(elsewhere)
    with living(filled, model) as url:
        client = Client(url)
        assert client.refused(409, "DELETE", "/v1/memories/m") == "is_link"
        assert client.get("/v1/memories/m")["entries"] == 13
    assert elsewhere.exists()


def test_a_memory_that_another_process_writes_is_not_deleted(
    filled: Path, model: Pretrained
) -> None:
    with living(filled, model) as url:
        with unbounded.open(filled / "m", model):
            code = Client(url).refused(503, "DELETE", "/v1/memories/m")
        assert code == "memory_unavailable"
        Client(url).good("DELETE", "/v1/memories/m")
    assert not on_disk(filled)
