"""The README's tree has every folder, and no file has grown past holding in the head."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_names_every_folder_and_only_those() -> None:
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("```text\nnative/")[1]
    named = set(re.findall(r"^  ([a-z_]+)/", tree.split("```")[0], flags=re.MULTILINE))
    there = {path.parent.name for path in (ROOT / "unbounded").glob("*/__init__.py")}
    assert named == there


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_no_two_modules_of_the_package_have_the_same_name() -> None:
    names = [path.stem for path in (ROOT / "unbounded").rglob("*.py") if path.stem[0] != "_"]
    assert sorted(names) == sorted(set(names))


def test_no_file_is_longer_than_400_lines() -> None:
    lines = {
        path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines())
        for folder in ("unbounded", "native", "tests", "experiments", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".h", ".cpp"}
    }
    assert {path: count for path, count in lines.items() if count > 400} == {}


def test_every_error_is_in_the_drawn_tree() -> None:
    from unbounded import errors

    drawn = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert name in drawn
