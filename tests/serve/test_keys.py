"""Keys that several processes change at once, and that a running service follows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.living import ROOT, Client, living
from unbounded.errors import StoreError
from unbounded.lm import Pretrained
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


def test_two_processes_that_change_keys_lose_nothing(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHANGES, str(tmp_path), name],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for name in ("ann", "bob", "eve")
    ]
    left = [id for child in children for id in child.communicate(timeout=120)[0].split()]
    assert len(left) == 45
    assert sorted(key.id for key in Keys(tmp_path).all()) == sorted(left)


def test_the_service_writes_no_other_file_that_it_reads_first() -> None:
    """Whoever adds one must lock it as keys are: then this list is the place to say so."""
    writers = [
        path.name
        for path in sorted((ROOT / "unbounded" / "serve").glob("*.py"))
        if any(word in path.read_text() for word in ("write_aside", "write_text", "os.replace"))
    ]
    assert writers == ["keys.py"]


def test_a_key_added_to_a_service_that_had_none_is_needed_at_once(
    tmp_path: Path, model: Pretrained
) -> None:
    root = tmp_path / "s"
    with living(root, model, keys=Keys(root)) as url:
        nobody = Client(url)
        nobody.post("/v1/memories", name="notes")
        key, token = Keys(root).add("ann", [], "write")
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
        assert Client(url, token).get("/v1/memories/notes")["entries"] == 0
        Keys(root).remove(key.id)
        # Who takes the last key away does not let everybody in, now or later.
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
    with living(root, model, keys=Keys(root)) as url:
        nobody = Client(url)
        assert nobody.refused(401, "GET", "/v1/memories") == "no_key"
        (root / FILE).unlink()
        assert nobody.get("/v1/memories")["memories"]


def test_damaged_keys_let_nobody_in(tmp_path: Path, model: Pretrained) -> None:
    root = tmp_path / "s"
    _, token = Keys(root).add("ann", [], "write")
    with living(root, model, keys=Keys(root)) as url:
        client = Client(url, token)
        client.get("/v1/memories")
        whole = (root / FILE).read_text()
        for damaged in ("", "{", "[]", '{"keys": [1]}', json.dumps({"keys": [{"id": "x"}]})):
            (root / FILE).write_text(damaged)
            assert client.ask("GET", "/v1/memories").status_code in (401, 503)
            with pytest.raises(StoreError, match="is damaged"):
                Keys(root).all()
        (root / FILE).write_text(whole)
        client.get("/v1/memories")
