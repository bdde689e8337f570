import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli_page", DOCS / "make_cli_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_the_commands_say(maker: ModuleType) -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == maker.render(), "run: make docs"


def test_commands_below_commands_are_on_the_page(maker: ModuleType) -> None:
    assert {("read",), ("memory", "move"), ("keys", "add")} <= set(maker.verbs())
