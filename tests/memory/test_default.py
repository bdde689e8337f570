"""The default model: it comes with the package, and is there at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import unbounded
from experiments.default_model import table
from tests.canary import MARKER, canary
from tests.commands import said
from unbounded.lm.model_folder import located
from unbounded.store.layout import read_about

FOLDER = located(Path("default"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def nothing_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what follows from this one model: worked out by the first test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def test_a_new_memory_has_it_without_being_asked(tmp_path: Path) -> None:
    with unbounded.open(tmp_path / "notes") as memory:
        memory.read("The zorble ate the grass.", "a")
    assert read_about(tmp_path / "notes")["model"]["path"] == "default"
    with unbounded.open(tmp_path / "notes") as memory:
        assert memory.predict("The zorble", n=1).words[0].word == "ate"
    with unbounded.open() as memory:
        assert memory.read("The zorble slept.").perplexity > 1


def test_reading_with_it_needs_no_torch_and_no_packages_of_texts(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import unbounded\n"
        f"with unbounded.open({str(tmp_path / 'notes')!r}) as memory:\n"
        "    print(memory.read('The zorble ate the grass.').words)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['the', 'zorble', 'ate', 'the', 'grass', '.', '</s>']\n"


def test_it_knows_english(tmp_path: Path) -> None:
    model = unbounded.load("default")
    with unbounded.open(model=model) as memory:
        words = [guess.word for guess in memory.predict("the united", n=1).words]
        plain = memory.score("We will meet again next week.").perplexity
        shuffled = memory.score("Again meet week will next we.").perplexity
    assert words == ["states"]
    assert 3 * plain < shuffled


def test_a_folder_of_that_name_in_the_working_directory_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    canary(tmp_path / "default", "code")
    assert unbounded.load("default").vocabulary.base_size > 20_000
    said("read", "notes", "-", stdin="some text\n")
    assert not (tmp_path / MARKER).exists()
    assert read_about(tmp_path / "notes")["model"]["path"] == "default"


def test_it_is_small_and_says_what_it_was_made_of() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 10_000_000
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["command"] == "make default-model"
    assert abs(card["cost_of_8_bits"]) < 0.01
    page = Path(__file__).parents[2] / "docs" / "default-model.md"
    assert table(card) in page.read_text(encoding="utf-8")
    for text in card["texts"]:
        assert {"license", "package", "text"} <= text.keys()
        assert text["words"] > 300_000
        assert text["perplexity"]["full"] < text["perplexity"]["static"] < 400
