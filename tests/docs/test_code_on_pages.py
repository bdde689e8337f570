"""The Python on the pages runs as it stands."""

import os
import re
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.lm.test_training import NETWORK
from unbounded.corpus import Tokenizer, demo_text, read_sentences
from unbounded.lm import TrainingConfig, train_model, training_text

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("tutorial.md", "memory.md"))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models and texts that the pages speak of."""
    place = tmp_path_factory.mktemp("pages")
    lines = list(islice(demo_text("sotu", years=range(1950, 1960)), 400))
    tokenizer = Tokenizer()
    text = training_text(read_sentences(lines, tokenizer), 5_000)
    config = TrainingConfig(epochs=1, streams=8)
    (place / "demo").mkdir()
    for _ in train_model(place / "my-model", text, tokenizer, NETWORK, config):
        pass
    shutil.copytree(place / "my-model", place / "demo" / "model")
    (place / "letters.txt").write_text("\n".join(line.text for line in lines[:50]))
    return place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, place: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=place,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md")))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
