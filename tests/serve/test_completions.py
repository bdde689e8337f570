"""The official client, unchanged."""

import math
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.serve.running_service import Client

TEXT = "The zorble ate the grass.\nThe zorble ate the hay."


@pytest.fixture(scope="module")
def official(address: str) -> Iterator[openai.OpenAI]:
    Client(address).make("zoo", TEXT, "diary")
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as official:
        yield official


def test_a_memory_is_a_model(official: openai.OpenAI) -> None:
    assert "zoo" in [model.id for model in official.models.list()]
    assert official.models.retrieve("zoo").owned_by == "unbounded"
    with pytest.raises(openai.NotFoundError):
        official.models.retrieve("nobody")


def test_it_completes_and_streams_the_same(official: openai.OpenAI) -> None:
    asked = {"model": "zoo", "prompt": "The zorble ate", "max_tokens": 6, "seed": 5}
    whole = official.completions.create(**asked)  # type: ignore[call-overload]
    assert whole.choices[0].finish_reason == "length"
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (3, 6)
    streamed = official.completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )  # type: ignore[call-overload]
    chunks = list(streamed)
    assert chunks[-1].usage == whole.usage
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].text
    assert len([chunk for chunk in chunks if chunk.choices]) == 6
    other = official.completions.create(**{**asked, "seed": 6})  # type: ignore[call-overload]
    assert other.choices[0].text != whole.choices[0].text


def test_stop_words_end_it_and_are_left_out(official: openai.OpenAI) -> None:
    asked = {"model": "zoo", "prompt": "The zorble ate", "max_tokens": 12, "temperature": 0}
    whole = official.completions.create(**asked).choices[0].text  # type: ignore[call-overload]
    stop = whole[7:12]
    for stream in (False, True):
        answer = official.completions.create(**asked, stop=[stop, "never"], stream=stream)  # type: ignore[call-overload]
        chunks = list(answer) if stream else [answer]
        said = "".join(chunk.choices[0].text for chunk in chunks)
        assert said == whole[: whole.index(stop)]
        assert chunks[-1].choices[0].finish_reason == "stop"


def test_echo_with_logprobs_scores_the_prompt(official: openai.OpenAI, address: str) -> None:
    prompt = "The zorble ate the grass.\nIt slept"
    answer = official.completions.create(
        model="zoo", prompt=prompt, max_tokens=0, echo=True, logprobs=0
    )
    (choice,) = answer.choices
    assert choice.text == prompt
    probs = choice.logprobs
    assert probs is not None
    assert probs.tokens is not None
    assert "".join(probs.tokens) == prompt
    assert [prompt[at] for at in probs.text_offset or []] == [one[0] for one in probs.tokens]
    scored = Client(address).post("/v1/memories/zoo/score", text=prompt)["words"][:-1]
    logs = [math.log(one["prob"]) for one in scored]
    assert probs.token_logprobs == pytest.approx(logs, rel=1e-3)


def test_the_likeliest_others_are_named_and_tokens_are_among_them(official: openai.OpenAI) -> None:
    prompt = "The zorble ate the grass.\nIt slept, said Mr. Obama"
    asked = {"model": "zoo", "prompt": prompt, "max_tokens": 12, "echo": True, "logprobs": 2}
    for temperature in (0, 2):
        more = {"temperature": temperature, "seed": 3, "stop": "xyz"}
        (choice,) = official.completions.create(**asked, **more).choices  # type: ignore[call-overload]
        probs = choice.logprobs
        assert "".join(probs.tokens) == choice.text
        told = list(zip(probs.tokens, probs.token_logprobs, probs.top_logprobs, strict=True))
        for token, log_prob, top in told:
            # As they stand in the text: the likeliest, and the one that stands there.
            assert top[token] == pytest.approx(log_prob)
            assert len(top) in (2, 3)
        # Drawn at temperature zero: each is the likeliest.
        for _, log_prob, top in told[-12:] if temperature == 0 else ():
            assert log_prob == pytest.approx(max(top.values()))


def test_the_best_of_some_are_answered(official: openai.OpenAI) -> None:
    asked = {"model": "zoo", "prompt": ["The zorble", "America", ""], "max_tokens": 5, "seed": 1}
    every = official.completions.create(**asked, n=4, logprobs=0).choices  # type: ignore[call-overload]
    best = official.completions.create(**asked, n=2, best_of=4).choices  # type: ignore[call-overload]
    assert [choice.index for choice in every] == list(range(12))
    assert len({choice.text for choice in every}) > 6
    assert [choice.index for choice in best] == list(range(6))
    for first in (0, 1, 2):
        four = sorted(every[4 * first :][:4], key=lambda one: -sum(one.logprobs.token_logprobs))
        assert [one.text for one in best[2 * first :][:2]] == [one.text for one in four[:2]]


@pytest.mark.parametrize(
    "more",
    [
        {"suffix": "."},
        {"presence_penalty": 0.5},
        {"frequency_penalty": -1},
        {"logit_bias": {"50256": -100}},
        {"best_of": 2, "n": 3},
        {"best_of": 2, "stream": True},
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    official: openai.OpenAI, more: dict[str, Any]
) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match=f"{next(iter(more))}.*leave it out"):
        official.completions.create(model="zoo", prompt="x", **more)
    plain: dict[str, Any] = {"suffix": None, "presence_penalty": 0, "logit_bias": {}, "best_of": 1}
    official.completions.create(model="zoo", prompt="x", max_tokens=1, **plain)


def test_mistakes_are_told_as_the_client_knows_them(official: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no memory"):
        official.completions.create(model="nobody", prompt="x")
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens"):
        official.completions.create(model="zoo", prompt="x", max_tokens=10**6)
    with pytest.raises(openai.NotFoundError, match="no memory"):
        list(official.completions.create(model="nobody", prompt="x", stream=True))


def test_tokens_are_as_good_as_text(official: openai.OpenAI, address: str) -> None:
    client, prompt = Client(address), "The zorble ate the grass.\nIt slept"
    tokens = client.post("/tokenize", prompt=prompt, add_special_tokens=False)["tokens"]
    assert client.post("/detokenize", tokens=tokens)["prompt"] == prompt.lower()
    asked = {"model": "zoo", "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
    texts = official.completions.create(prompt=prompt, **asked).choices[0].logprobs  # type: ignore[call-overload]
    found = official.completions.create(prompt=tokens, **asked).choices[0].logprobs  # type: ignore[call-overload]
    # A token each, whatever was spelled; all in all as likely.
    assert len(found.token_logprobs) == len(found.top_logprobs) == len(tokens) + 1
    assert sum(found.token_logprobs) == pytest.approx(sum(texts.token_logprobs))
    two = official.completions.create(prompt=[tokens, tokens[:1]], **asked)  # type: ignore[call-overload]
    assert len(two.choices) == 2
    end = client.get("/tokenizer_info")["eos_token"]
    assert client.post("/tokenize", prompt=end)["count"] == 1
    assert client.refused(422, "POST", "/detokenize", {"tokens": [10**6]}) == "bad_token"


def test_names_of_reserved_words_are_text_like_any_other(
    official: openai.OpenAI, address: str
) -> None:
    client = Client(address)
    (end,) = client.post("/tokenize", prompt=client.get("/tokenizer_info")["eos_token"])["tokens"]
    begin = client.get("/tokenizer_info")["vocab_size"] - 2
    for text in ("</s>", "<unk>", "say </s> <unk> aloud", "</S>"):
        tokens = client.post("/tokenize", prompt=text)["tokens"]
        assert end not in tokens
        assert client.post("/tokenize", prompt=f"{text}\nx")["tokens"][len(tokens)] == end
        asked = {"model": "zoo", "prompt": text, "max_tokens": 0, "echo": True, "logprobs": 0}
        assert official.completions.create(**asked).choices[0].text == text  # type: ignore[call-overload]
    for spelled in (b"</s>", b"x" * 101):
        tokens = [begin, *(begin - 256 + byte for byte in spelled), begin + 1]
        assert client.refused(422, "POST", "/detokenize", {"tokens": tokens}) == "bad_token"


def test_the_harness_runs_over_http(official: openai.OpenAI, address: str) -> None:
    for name in ("lm_eval", "tenacity"):
        pytest.importorskip(name, reason="needs lm_eval[api], which is large and an extra")
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    harness = LocalCompletionsAPI(
        base_url=f"{address}/v1/completions", model="zoo", max_length=200, num_concurrent=1
    )
    best = official.completions.create(
        model="zoo", prompt="The zorble ate the", max_tokens=1, temperature=0
    )
    ends = (" grass.", " president.", best.choices[0].text)
    asked = [("The zorble ate the", end) for end in ends]
    instances = [
        Instance("loglikelihood", {}, pair, n, ("test", n, 1)) for n, pair in enumerate(asked)
    ]
    (known, _), (unknown, greedy), (likeliest, greediest) = harness.loglikelihood(instances)
    assert known > unknown + 1
    assert likeliest > unknown
    assert (greedy, greediest) == (False, True)
    words = Client(address).post("/v1/memories/zoo/score", text="The zorble ate the grass.")
    expected = sum(math.log(one["prob"]) for one in words["words"][4:6])
    assert known == pytest.approx(expected, rel=1e-3)
    rolling = Instance("loglikelihood_rolling", {}, ("The zorble ate the hay.",), 0, ("t", 0, 1))
    assert harness.loglikelihood_rolling([rolling])[0] < 0
    until = Instance(
        "generate_until",
        {},
        ("The zorble ate", {"until": ["\n"], "max_gen_toks": 5}),
        0,
        ("t", 0, 1),
    )
    assert "\n" not in harness.generate_until([until])[0]
