"""The version, the extras and the pins are the same wherever they are written."""

import re
import tomllib
from pathlib import Path

from unbounded import errors
from unbounded.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[<>=\[ ]", each)[0].lower().replace("_", "-") for each in requirements}
    return found - {"unbounded"}


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (?!Unreleased)([\d.]+)", changelog, flags=re.MULTILINE)
    assert versions[0] == __version__
    assert versions == sorted(versions, reverse=True)


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [__version__]


def test_the_core_needs_little() -> None:
    light = {"numpy", "rich", "safetensors", "threadpoolctl", "typer", "zstandard"}
    assert names(PROJECT["dependencies"]) == light


def test_every_extra_that_an_error_names_exists_and_brings_the_package() -> None:
    assert {"torch", "fastapi", "ray"} <= set(errors._EXTRAS)
    for package, extra in errors._EXTRAS.items():
        brought = {each.partition("-")[0] for each in names(EXTRAS[extra])}
        assert package.partition("_")[0] in brought, f"unbounded[{extra}] does not bring {package}"


def test_every_tool_and_dependency_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    wanted = names(PROJECT["dependencies"]).union(*map(names, EXTRAS.values()))
    assert wanted - pinned == set()
