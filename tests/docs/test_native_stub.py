"""The stub of the native module says of each argument what the module itself says."""

import ast
import inspect
import re
from pathlib import Path

import unbounded
from unbounded import _native


def stubbed() -> dict[str, tuple[list[str], list[str]]]:
    """By name, the arguments that go by place alone, and those that have a name too."""
    found = {}
    tree = ast.parse(Path(unbounded.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in inside:
            if isinstance(each, ast.FunctionDef) and not each.decorator_list:
                args = [
                    [arg.arg for arg in part] for part in (each.args.posonlyargs, each.args.args)
                ]
                by_place, named = ([arg for arg in part if arg != "self"] for part in args)
                found[prefix + each.name] = by_place, named
    return found


def told(name: str) -> tuple[int, list[str]]:
    """How many arguments go by place alone, and the names of the others, as the module tells."""
    what: object = _native
    for part in name.split("."):
        what = getattr(what, part)
    line = (inspect.getdoc(what) or "").splitlines()[0]
    # Types may have commas inside; no name stands before one of those.
    names = re.findall(r"[(,] ?(\w+): ", line)
    return (len(names), []) if ", /)" in line else (0, names)


def test_every_function_of_the_stub_takes_its_arguments_as_the_module_does() -> None:
    for name, (by_place, named) in stubbed().items():
        assert (len(by_place), named) == told(name), name


def test_the_stub_leaves_nothing_out() -> None:
    functions = {name for name in dir(_native) if not name.startswith("_")}
    assert functions == {name.split(".")[0] for name in stubbed()}
