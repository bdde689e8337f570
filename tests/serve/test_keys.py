"""Keys: made by the command, changed by processes at once, damaged, wanted elsewhere."""

import json
from pathlib import Path

import pytest

from tests.serve.conftest import Run
from tests.serve.running_service import ROOT, Client, child, in_thread
from unbounded.errors import SettingError, StoreError
from unbounded.lm import Pretrained
from unbounded.serve.app import chosen_keys
from unbounded.serve.keys import FILE, Keys

CHANGES = """
import sys
from pathlib import Path
from unbounded.serve.keys import Keys
keys, left = Keys(Path(sys.argv[1])), []
for n in range(30):
    left.append(keys.add(f"{sys.argv[2]}-{n}", [], "read")[0].id)
    if n % 2:
        keys.remove(left.pop(0))
print(" ".join(left))
"""


def test_processes_that_change_keys_lose_nothing(tmp_path: Path) -> None:
    children = [child("python", "-c", CHANGES, tmp_path, name) for name in ("ann", "bob", "eve")]
    left = [id for one in children for id in one.communicate(timeout=120)[0].split()]
    assert len(left) == 45
    assert sorted(key.id for key in Keys(tmp_path).all()) == sorted(left)


def test_the_service_writes_no_other_file_that_it_reads_first() -> None:
    """Whoever adds one must lock it as keys are: then this list is the place to say so."""
    writers = [
        path.name
        for path in sorted((ROOT / "unbounded" / "serve").glob("*.py"))
        if any(
            word in path.read_text() for word in ("write_atomically", "write_text", "os.replace")
        )
    ]
    assert writers == ["keys.py"]


def test_damaged_keys_let_nobody_in(tmp_path: Path, model: Pretrained) -> None:
    root = tmp_path / "s"
    _, token = Keys(root).add("ann", [], "write")
    with in_thread(root, model, keys=Keys(root)) as url:
        client = Client(url, token)
        client.get("/v1/memories")
        good = (root / FILE).read_text()
        for damaged in ("", "{", "[]", '{"keys": [1]}', json.dumps({"keys": [{"id": "x"}]})):
            (root / FILE).write_text(damaged)
            assert client.ask("GET", "/v1/memories").status_code in (401, 503)
            with pytest.raises(StoreError, match="is damaged"):
                Keys(root).all()
        (root / FILE).write_text(good)
        client.get("/v1/memories")


def test_keys_are_made_listed_and_removed(tmp_path: Path, run: Run) -> None:
    root = tmp_path / "s"
    made = json.loads(run("keys", "add", root, "--label", "ann", "--memory", "n", "--json", "-")[1])
    assert made["right"] == "read"
    token = run("keys", "add", root, "--write")[1].strip()
    assert token.startswith("ub_")
    listed = run("keys", "list", root)[1].splitlines()
    assert [line.split()[1] for line in listed] == ["read", "write"]
    assert listed[0].endswith("n  ann")
    assert token not in run("keys", "list", root, "--json", "-")[1]
    assert run("keys", "remove", root, made["id"])[0] == 0
    (left,) = json.loads(run("keys", "list", root, "--json", "-")[1])["keys"]
    assert left["memories"] == ["*"]
    assert "it was the last: nobody is served" in run("keys", "remove", root, left["id"])[2]
    # What the list says is what a service does.
    assert f"no keys left: nobody is served until you add one, or delete {root / FILE}" in (
        run("keys", "list", root)[2].replace("\n", "")
    )
    assert json.loads(run("keys", "list", root, "--json", "-")[1]) == {"keys": [], "on": True}
    (root / FILE).unlink()
    assert json.loads(run("keys", "list", root, "--json", "-")[1]) == {"keys": [], "on": False}
    for words, line in (
        (("remove", root, "nobody"), "there is no key 'nobody'"),
        (("add", root, "--memory", "../up"), "is no name for a memory"),
    ):
        status, _, said = run("keys", *words)
        assert status == 1
        assert line in said


def test_elsewhere_than_on_loopback_it_wants_keys_or_to_be_told_not_to(tmp_path: Path) -> None:
    root, loopback = tmp_path / "s", ("127.0.0.1", "::1", "localhost", "127.0.0.9")
    elsewhere = ("0.0.0.0", "::", "192.168.0.1", "example.org")

    def on(host: str) -> bool:
        keys = chosen_keys(root, host, without_keys=False)
        assert keys is not None
        return keys.on

    assert not any(map(on, loopback))
    for host in elsewhere:
        with pytest.raises(SettingError, match="has no keys"):
            on(host)
        assert chosen_keys(root, host, without_keys=True) is None
    key, _ = Keys(root).add("", [], "read")
    assert all(map(on, (*loopback, *elsewhere)))
    Keys(root).remove(key.id)
    # Who has removed the last key has not opened the door.
    assert all(map(on, loopback))
    with pytest.raises(SettingError, match="has no keys"):
        on("0.0.0.0")
