"""A canary under every command that takes a model or a memory, with `yes` on standard input.

With UNBOUNDED_TORTURE set, every kind of canary; otherwise the one that asks for code everywhere.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.canary import KINDS, MARKER, canary
from tests.commands import assert_fails
from tests.memory.texts import open_toy
from unbounded.cli.main import app
from unbounded.store.disk import sealed, unsealed
from unbounded.store.layout import NAME

ENGINE = ["--engine", "ray://127.0.0.1:1"]
"""Nobody is there: the canary would have sung before that is found out."""

NO_MODEL = {("keys", "add"), ("keys", "list"), ("keys", "remove")}
NO_MODEL |= {("memory", "backup"), ("memory", "restore")}
"""Commands that open neither model nor memory."""

REST = {
    ("predict",): ["some text"],
    ("score",): ["-"],
    ("complete",): ["some text"],
    ("read",): ["-"],
    ("evaluate",): ["-"],
    ("memory", "forget"): ["--last", "1"],
    ("memory", "export"): ["out.parquet"],
    ("memory", "move"): ["target"],
}


def leaves(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for part, below in getattr(command, "commands", {}).items():
        yield from leaves(below, (*name, part))
    if not hasattr(command, "commands"):
        yield name, command


def commands() -> Iterator[list[str]]:
    """Every way to give each command a canary: as its model, or in a memory that names it."""
    yield ["demo", "--out", "demo"]
    for name, command in leaves(typer.main.get_command(app)):
        if name in NO_MODEL | {("demo",)}:
            continue
        rest = REST.get(name, [])
        given = {parameter.name: parameter for parameter in command.params}
        if name == ("train",):
            yield ["train", "consent.txt", "--out", "model"]
            continue
        if name == ("evaluate",):
            yield ["evaluate", "model", *rest]
            continue
        if name == ("audit",):
            yield ["audit", "model", "consent.txt"]
            continue
        if name == ("rescore",):
            yield from (["rescore", where, "-"] for where in ("model", "gift"))
            continue
        # A command that is new here must be one of a memory, or be written down above.
        assert {"memory_folder", "source", "root"} & given.keys(), name
        where = "root" if "root" in given else "gift"
        if name == ("memory", "move"):
            for number, more in enumerate(([], ENGINE, [*ENGINE, "--model", "model"])):
                yield [*name, "gift", f"moved{number}", *more]
            continue
        yield [*name, where, *rest]
        yield [*name, where, *rest, "--model", "model"]
        if "engine" in given and where == "gift":
            yield [*name, "spread", *rest, *ENGINE]
            yield [*name, "spread", *rest, *ENGINE, "--model", "model"]


@pytest.fixture(scope="module", params=KINDS if "UNBOUNDED_TORTURE" in os.environ else ["code"])
def place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("canary")
    canary(folder / "model", request.param)
    shutil.copytree(folder / "model", folder / "demo" / "model")
    with open_toy(folder / "gift") as memory:
        memory.read("known1 known2", "a")
    about = unsealed((folder / "gift" / NAME).read_bytes())
    about["model"]["path"] = str(folder / "model")
    (folder / "gift" / NAME).write_bytes(sealed(about))
    shutil.copytree(folder / "gift", folder / "root" / "gift")
    shutil.copytree(folder / "gift", folder / "spread")
    (folder / "spread" / NAME).write_bytes(sealed({**about, "shards": 1}))
    (folder / "consent.txt").write_text("some text\n" + "1\ny\nyes\n" * 50)
    return folder


@pytest.mark.torture
def test_no_command_runs_code_from_a_model_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    consent = (place / "consent.txt").read_text()
    for command in commands():
        assert_fails(command, "model", stdin=consent)
        assert not (place / MARKER).exists()
