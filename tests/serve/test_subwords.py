"""A model of pieces, served: the same requests, the same answers as the library's."""

from collections.abc import Iterator

import openai
import pytest

from tests.serve.running_service import Client, in_thread
from tests.transformers_small import pretrained
from unbounded.lm import Pretrained

TEXT = "The zorble ate the grass.\nA zorble ate the hay. 🦜\n"


@pytest.fixture(scope="module")
def model(place: None) -> Pretrained:
    return pretrained()


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[Client]:
    with in_thread(tmp_path_factory.mktemp("subwords"), model) as url:
        client = Client(url)
        client.make("zoo", TEXT, "diary")
        yield client


def test_every_piece_is_scored_where_it_stands(zoo: Client, model: Pretrained) -> None:
    text = "The zorble 🦜 ate"
    found = zoo.post("/v1/memories/zoo/score", text=text)
    pieces = model.tokenizer.words(text)
    assert len(found["words"]) == len(pieces) + 1
    ends = [row["end"] for row in found["words"]]
    assert ends == sorted(ends)
    assert ends[-2] == len(text)
    assert all(0 < row["prob"] <= 1 for row in found["words"])
    assert not any("Ġ" in row["word"] for row in found["words"])


def test_the_likeliest_are_shown_as_words_with_their_passages(zoo: Client) -> None:
    found = zoo.post("/v1/memories/zoo/predict", text="The zorble ate", n=3, sources=1)
    assert found["words"][0]["word"] == "the"
    assert "zorble ate the" in found["words"][0]["sources"][0]["text"]


def test_a_completion_goes_on_with_the_text(zoo: Client, model: Pretrained) -> None:
    asked = {"prompt": "The zorble", "max_tokens": 4, "temperature": 0, "model": "zoo"}
    with openai.OpenAI(base_url=f"{zoo.url}/v1", api_key="none", max_retries=0) as official:
        whole = official.completions.create(**asked)  # type: ignore[call-overload]
        tokens = zoo.post("/tokenize", prompt="The zorble")["tokens"]
        again = official.completions.create(**{**asked, "prompt": tokens})
        echoed = official.completions.create(  # type: ignore[call-overload]
            **{**asked, "echo": True, "logprobs": 1, "max_tokens": 1}
        )
    assert whole.choices[0].text.startswith(" ate")
    assert again.choices[0].text == whole.choices[0].text
    assert whole.usage.prompt_tokens == len(tokens) == len(model.tokenizer.words("The zorble"))
    probs = echoed.choices[0].logprobs
    assert all(token in top for token, top in zip(probs.tokens, probs.top_logprobs, strict=True))
    assert echoed.choices[0].text == "The zorble" + echoed.choices[0].logprobs.tokens[-1]


def test_tokens_are_the_networks_own_and_none_spells_another(
    zoo: Client, model: Pretrained
) -> None:
    size = zoo.get("/tokenizer_info")["vocab_size"]
    assert size == model.lm.base_size
    tokens = zoo.post("/tokenize", prompt=TEXT)["tokens"]
    assert zoo.post("/detokenize", tokens=tokens)["prompt"] == TEXT
    asked = {"model": "zoo", "prompt": [size], "max_tokens": 1}
    assert zoo.refused(422, "POST", "/v1/completions", asked) == "bad_token"


def test_lines_are_forgotten_by_their_words_whatever_pieces_they_are(zoo: Client) -> None:
    path = zoo.make("few", "my secretive aunt\nmy secret aunt\nan aunt")
    before = zoo.get(path)["entries"]
    gone = zoo.post(f"{path}/forget", matching="secret")["forgotten"]
    assert 0 < gone < before
    left = zoo.get(path)["entries"]
    assert zoo.post(f"{path}/forget", matching="secret")["forgotten"] == 0
    assert zoo.post(f"{path}/forget", matching="secretive aunt")["forgotten"] > 0
    assert zoo.get(path)["entries"] < left
