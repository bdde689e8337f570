"""What is deleted or forgotten is in no file: killed at any step, when it is asked for again."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve import running_service
from tests.serve.running_service import SECRET, Client, child, in_thread, on_disk, opened
from unbounded.lm import Pretrained
from unbounded.serve.registry import DELETED, delete_folder, finish_deletions

# Does its work in a fork for each line it is sent, and ends that, as kill -9 would, at the nth call
# that changes a folder; answers whether it came so far.
FORKS = """
import os, sys
from pathlib import Path
import unbounded
from unbounded.cluster import sharded
from unbounded.memory import checkpointing
from unbounded.serve.registry import delete_folder

ENGINE, sharded.BATCH, checkpointing.FEWEST_WORDS = eval(sys.argv[1]), 16, 0

def delete(root):
    arm()
    delete_folder(root, "m")

def forget(root):
    with unbounded.open(root / "m", engine=ENGINE) as memory:
        arm()
        memory.forget(document="private")
        if memory.stats()["forgotten"]:
            memory.compact()
        os._exit(0)

def dying(real):
    def call(*given, **more):
        global left
        left -= 1
        if not left:
            os._exit(9)
        return real(*given, **more)
    return call

def arm():
    for name in ("rename", "replace", "unlink", "remove", "rmdir", "fsync"):
        setattr(os, name, dying(getattr(os, name)))

for line in sys.stdin:
    work, step, root = line.split()
    if not (pid := os.fork()):
        left = int(step)
        globals()[work](Path(root))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Killer:
    """Has work done in a process that is killed at one of its steps."""

    def __init__(self) -> None:
        self.process = child("python", "-c", FORKS, repr(running_service.ENGINE))

    def killed_at(self, work: str, step: int, root: Path) -> bool:
        """Whether it got so far that it was killed there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{work} {step} {root}\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline().strip()
        assert status in ("0", "9"), status
        return status == "9"


@pytest.fixture(scope="module")
def killer(place: None) -> Iterator[Killer]:
    killer = Killer()
    yield killer
    assert killer.process.communicate(timeout=30) == ("", "")


@pytest.fixture
def filled(tmp_path: Path, model: Pretrained) -> Path:
    root = tmp_path / "root"
    with opened(root / "m", model) as memory:
        memory.read("The zorble ate the grass.", "public")
        memory.read(f"Only ann says {SECRET}.", "private")
    assert on_disk(root)
    return root


def test_a_deletion_that_was_killed_is_finished_at_the_next_start(
    filled: Path, tmp_path: Path, killer: Killer
) -> None:
    step = 1
    while True:
        root = tmp_path / f"try{step}"
        shutil.copytree(filled, root)
        if not killer.killed_at("delete", step, root):
            assert not on_disk(root)
            break
        step += 1
        there = (root / "m").is_dir()
        assert finish_deletions(root) == []
        assert not list(root.glob(f"{DELETED}*"))
        if there:
            # Never begun, never acknowledged: it can be asked for again.
            delete_folder(root, "m")
        assert not on_disk(root)
    assert step > 5


@pytest.mark.torture
def test_forgetting_that_was_killed_is_finished_when_it_is_asked_for_again(
    filled: Path, tmp_path: Path, model: Pretrained, killer: Killer, whole: bool
) -> None:
    step, kills = 1, 0
    while True:
        root = tmp_path / f"try{step}"
        shutil.copytree(filled, root)
        if not killer.killed_at("forget", step, root):
            break
        kills += 1
        with in_thread(root, model) as url:
            answer = Client(url).ask("POST", "/v1/memories/m/forget", {"document": "private"})
            # Gone already, or gone now; and a memory is whole after each.
            assert answer.status_code in (200, 404)
            assert Client(url).get("/v1/memories/m")["entries"] == 7
        assert not on_disk(root)
        step += 1 if whole else 5
    assert kills > 2


def test_what_could_not_be_taken_away_is_not_called_deleted(
    filled: Path, model: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.unlink

    def failing(path: Any, *given: Any, **more: Any) -> None:
        if "journal" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        real(path, *given, **more)

    with in_thread(filled, model) as url:
        client = Client(url)
        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", failing)
            assert client.refused(503, "DELETE", "/v1/memories/m") == "memory_unavailable"
        assert client.refused(404, "GET", "/v1/memories/m") == "no_memory"
    assert list(filled.glob(f"{DELETED}*"))
    with in_thread(filled, model) as url:
        assert Client(url).get("/v1/memories") == {"memories": []}
        assert not on_disk(filled)


def test_a_memory_with_a_link_in_it_is_not_called_deleted(
    filled: Path, tmp_path: Path, model: Pretrained
) -> None:
    """A memory that is a link is in test_sentences.py."""
    elsewhere = tmp_path / "elsewhere"
    journal = next((filled / "m").glob("journal*"))
    journal.rename(elsewhere)
    journal.symlink_to(elsewhere)
    with in_thread(filled, model) as url:
        client = Client(url)
        assert client.refused(409, "DELETE", "/v1/memories/m") == "is_link"
        assert client.get("/v1/memories/m")["entries"] == 13
    assert elsewhere.exists()


def test_a_memory_that_another_process_writes_is_not_deleted(
    filled: Path, model: Pretrained
) -> None:
    with in_thread(filled, model) as url:
        with opened(filled / "m", model):
            code = Client(url).refused(503, "DELETE", "/v1/memories/m")
        assert code == "memory_unavailable"
        Client(url).good("DELETE", "/v1/memories/m")
    assert not on_disk(filled)
