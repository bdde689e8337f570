"""`generate` with a memory: plain without one, the same for a seed, and what was read with one."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.toy import ToyModel
from tests.transformers_small import FAMILIES, TEXT, pretrained
from unbounded.errors import ModelError, SettingError
from unbounded.integrations.transformers_generate import Writer
from unbounded.lm import Pretrained, TransformerConfig
from unbounded.model import OnlineModel
from unbounded.presets import MemoryConfig, build_online

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True},
    "beams": {"do_sample": False, "num_beams": 3},
}
EXPERTS = ("static", "uniform", "adapted", "unigram", "ngram", "cache_128", "unbounded")


def built(family: str = "gpt2", key: str = "output") -> tuple[Pretrained, OnlineModel, Any]:
    model = pretrained(family, TransformerConfig(key=key))
    online = build_online(model, None, EXPERTS, MemoryConfig())
    ids = model.vocabulary.lookup(model.tokenizer.words("the cat sat"))
    return model, online, torch.from_numpy(ids)[None]


def read(model: Pretrained, online: OnlineModel) -> None:
    for line in TEXT.splitlines() * 5:
        online.read([*model.tokenizer.words(line), "</s>"])


def seeded(write: Any, ids: Any, **options: Any) -> list[list[int]]:
    torch.manual_seed(5)
    found: list[list[int]] = write(ids, max_new_tokens=6, **options).tolist()
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_with_an_empty_memory_it_is_plain_generate(family: str, way: str) -> None:
    model, online, ids = built(family)
    plain: Any = pretrained(family).lm
    mask = torch.ones_like(ids)
    expected = seeded(plain.network.generate, ids, attention_mask=mask, **WAYS[way])
    assert seeded(Writer(model, online).generate, ids, **WAYS[way]) == expected


@pytest.mark.parametrize("way", WAYS)
def test_with_a_memory_it_is_the_same_for_a_seed_and_teaches_nothing(way: str) -> None:
    model, online, ids = built()
    read(model, online)
    before = online.state()
    writer = Writer(model, online)
    one = seeded(writer.generate, ids, **WAYS[way])
    assert one == seeded(writer.generate, ids, **WAYS[way])
    for name, array in online.state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("key", ["output", "feedforward"])
@pytest.mark.parametrize("way", ["greedy", "beams"])
def test_what_was_read_again_and_again_is_what_is_written(way: str, key: str) -> None:
    model, online, ids = built("llama", key)
    read(model, online)
    written = Writer(model, online).generate(ids, max_new_tokens=3, **WAYS[way])
    said = model.tokenizer.text(model.vocabulary.decode(written[0].numpy()))
    assert said == "the cat sat on the mat"


def test_each_step_is_what_the_model_behind_the_text_predicts() -> None:
    model, online, ids = built()
    read(model, online)
    options = {"output_scores": True, "return_dict_in_generate": True, "do_sample": False}
    found = Writer(model, online).generate(ids, max_new_tokens=3, **options)
    text = found.sequences[0].tolist()
    # The same, piece by piece, by a model that is told the states of the text.
    hidden = _states(model, text)
    behind = online.fork(hidden=hidden[:1])
    for place in range(1, len(text)):
        if place >= ids.shape[1]:
            expected = behind.predict().dense(model.lm.base_size)[0]
            got = found.scores[place - ids.shape[1]][0].exp().numpy()
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-6)
        word = np.array([text[place]])
        _, behind = behind.peek(model.vocabulary.decode(word), (hidden[place : place + 1], None))


def _states(model: Pretrained, text: list[int]) -> np.ndarray:
    lm: Any = model.lm
    with torch.inference_mode():
        ids = torch.tensor([text])
        found = lm.network.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))
        states: np.ndarray = found.last_hidden_state[0].numpy()
    return states


def test_a_batch_padded_on_the_left_writes_what_each_text_alone_writes() -> None:
    model, online, ids = built("llama")
    read(model, online)
    writer = Writer(model, online)
    short = ids[:, :2]
    batch = torch.cat([ids, torch.cat([torch.zeros_like(ids[:, 2:]), short], 1)])
    mask = torch.ones_like(batch)
    mask[1, : ids.shape[1] - 2] = 0
    both = writer.generate(batch, attention_mask=mask, max_new_tokens=4, do_sample=False)
    for row, alone in ((0, ids), (1, short)):
        one = writer.generate(alone, max_new_tokens=4, do_sample=False)
        assert both[row, -4:].tolist() == one[0, -4:].tolist()


def test_what_is_written_is_read_only_when_asked_for() -> None:
    model, online, ids = built()
    read(model, online)
    cache: Any = online.experts["unbounded"]
    entries = len(cache.datastore)
    writer = Writer(model, online)
    writer.generate(ids, max_new_tokens=4, do_sample=False)
    assert len(cache.datastore) == entries
    written = writer.generate(ids, insert=True, max_new_tokens=4, do_sample=False)
    assert len(cache.datastore) == entries + written.shape[1] - ids.shape[1]
    with pytest.raises(SettingError, match="2 texts to write and to learn"):
        writer.generate(torch.cat([ids, ids]), insert=True)


def test_text_goes_on_as_text() -> None:
    model, online, _ = built()
    read(model, online)
    said = Writer(model, online).write("the cat sat on the mat\nthe dog", max_new_tokens=2)
    assert said == " ate the"


def test_who_does_not_belong_together_is_refused() -> None:
    model, online, _ = built()
    with pytest.raises(ModelError, match="belongs to another model"):
        Writer(pretrained("llama"), online)
    other = Pretrained(ToyModel(12, 5), model.vocabulary, model.tokenizer, {}, ())
    with pytest.raises(ModelError, match="only a transformer has 'generate'"):
        Writer(other, online)
