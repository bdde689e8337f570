"""Train a small GPT-2 shape and its byte-pair vocabulary on a text, on one core, in under an hour.

    python -m experiments.transformers.train TEXT OUT [--words 2M] [--steps 1000] [--threads 1]

OUT is a Hugging Face folder when it is done. A run that was interrupted goes on where it was:
all randomness of a step comes from the seed and the step's number.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from experiments.corpora import first_words
from unbounded.console import parse_size
from unbounded.lm.model_folder import keep_pieces
from unbounded.lm.subwords import PieceTokenizer

START = "<|endoftext|>"
STATE, PROGRESS = "training.safetensors", "training.json"


@dataclass(frozen=True)
class Settings:
    """The shape, and how it is trained."""

    vocabulary: int = 8192
    width: int = 256
    layers: int = 4
    heads: int = 8
    context: int = 256
    dropout: float = 0.1
    batch: int = 8
    steps: int = 1000
    warmup: int = 60
    rate: float = 1.5e-3
    decay: float = 0.1
    seed: int = 1


def train_tokenizer(lines: list[str], size: int) -> PreTrainedTokenizerFast:
    """Byte-pair encoding over bytes, as GPT-2 has it."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[START],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator((f"{line}\n" for line in lines), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token=START, eos_token=START)


def encode(tokenizer: PreTrainedTokenizerFast, lines: list[str]) -> torch.Tensor:
    """All lines as one stream of pieces, a line end after each."""
    (end,) = tokenizer.encode("\n")
    parts = [np.array([*ids, end]) for ids in tokenizer(lines)["input_ids"]]
    return torch.from_numpy(np.concatenate(parts))


def batch_of(stream: torch.Tensor, start: int, settings: Settings, step: int) -> torch.Tensor:
    """Windows of the stream, each behind a start mark; an epoch has each window once, in turn."""
    inside = settings.context - 1
    windows = len(stream) // inside
    first = step * settings.batch
    epoch = np.random.default_rng([settings.seed, first // windows])
    order, shift = (
        epoch.permutation(windows),
        int(epoch.integers(len(stream) - windows * inside + 1)),
    )
    rows = [order[(first + i) % windows] * inside + shift for i in range(settings.batch)]
    text = torch.stack([stream[row : row + inside] for row in rows])
    return torch.cat([torch.full((len(rows), 1), start), text], 1)


def rate_at(step: int, settings: Settings) -> float:
    """A linear rise, then half a cosine to a twentieth."""
    if step < settings.warmup:
        return settings.rate * (step + 1) / settings.warmup
    share = (step - settings.warmup) / max(settings.steps - settings.warmup, 1)
    return settings.rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(share, 1.0))))


def save(
    folder: Path, model: GPT2LMHeadModel, adam: torch.optim.AdamW, about: dict[str, Any]
) -> None:
    """Write weights and what Adam knows, aside and then in place."""
    names = dict(model.named_parameters())
    tensors = {f"weight.{name}": weight.detach() for name, weight in names.items()}
    for name, weight in names.items():
        for part, value in adam.state.get(weight, {}).items():
            tensors[f"adam.{part}.{name}"] = value
    aside = folder / f".{STATE}"
    save_file(tensors, aside, metadata={"progress": json.dumps(about)})
    aside.replace(folder / STATE)
    (folder / PROGRESS).write_text(json.dumps(about, indent=2) + "\n")


def resume(folder: Path, model: GPT2LMHeadModel, adam: torch.optim.AdamW) -> dict[str, Any] | None:
    """Put both where the interrupted run was."""
    if not (folder / STATE).exists():
        return None
    tensors = load_file(folder / STATE)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(tensors[f"weight.{name}"])
            adam.state[weight] = {
                part: tensors[f"adam.{part}.{name}"] for part in ("step", "exp_avg", "exp_avg_sq")
            }
    found: dict[str, Any] = json.loads((folder / PROGRESS).read_text())
    return found


def main() -> None:
    """Train, or go on training, and save the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--words", type=parse_size, default=2_000_000)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    settings = Settings(steps=asked.steps)
    torch.set_num_threads(asked.threads)
    asked.out.mkdir(parents=True, exist_ok=True)
    lines = [line.text.strip() for line in first_words(asked.text, asked.words)]
    if (asked.out / "tokenizer.json").exists():
        tokenizer = PreTrainedTokenizerFast.from_pretrained(asked.out)
    else:
        tokenizer = train_tokenizer(lines, settings.vocabulary)
        tokenizer.save_pretrained(asked.out)
    stream = encode(tokenizer, lines)
    start = tokenizer.bos_token_id
    torch.manual_seed(settings.seed)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=settings.context,
            n_embd=settings.width,
            n_layer=settings.layers,
            n_head=settings.heads,
            resid_pdrop=settings.dropout,
            embd_pdrop=settings.dropout,
            attn_pdrop=0.0,
            bos_token_id=start,
            eos_token_id=start,
        )
    ).train()
    adam = torch.optim.AdamW(
        model.parameters(), lr=settings.rate, betas=(0.9, 0.98), weight_decay=settings.decay
    )
    about = resume(asked.out, model, adam) or {"step": 0, "seconds": 0.0, "curve": []}
    had = about.get("settings", asdict(settings))
    if had | {"steps": settings.steps} != asdict(settings):
        raise SystemExit(f"{asked.out} was begun with other settings; choose another OUT")
    if had["steps"] != settings.steps:
        about["changed"] = f"from {had['steps']} steps to {settings.steps} at {about['step']}"
    about["settings"], about["pieces"] = asdict(settings), len(stream)
    began, spent, lately = time.monotonic(), about["seconds"], []
    while about["step"] < settings.steps:
        step = about["step"]
        torch.manual_seed(settings.seed * 1_000_003 + step)
        for group in adam.param_groups:
            group["lr"] = rate_at(step, settings)
        pieces = batch_of(stream, start, settings, step)
        loss = model(pieces, labels=pieces).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        lately.append(loss.item())
        about["step"], about["seconds"] = step + 1, spent + time.monotonic() - began
        if about["step"] % 50 == 0 or about["step"] == settings.steps:
            nats = sum(lately) / len(lately)
            about["curve"].append([about["step"], round(nats, 4), round(about["seconds"])])
            print(
                f"{about['step']:,} steps, {about['seconds']:,.0f} s, {nats:.3f} nats", flush=True
            )
            lately = []
            save(asked.out, model, adam, about)
    model.eval().save_pretrained(asked.out)
    # The training text stays beside the model, for the n-grams that read it first.
    keep_pieces(asked.out, PieceTokenizer(tokenizer, len(tokenizer)), stream.numpy())


if __name__ == "__main__":
    main()
