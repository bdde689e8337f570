"""How fast text becomes words and a network learns, beside the same done plainly, in one run.

Times are the best of several rounds that alternate between the contestants, in CPU seconds where
there is one thread: on a busy machine that is what repeats.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from unbounded import _native
from unbounded.corpus import Line, Tokenizer
from unbounded.lm.adapted_head import AdaptedHead, SharedHead
from unbounded.lm.devices import set_network_threads
from unbounded.lm.pytorch import Encoder, TorchModel, build_head, frozen
from unbounded.lm.settings import NetworkConfig, TrainingConfig
from unbounded.lm.training import Trainer
from unbounded.types import Ids

ROUNDS = 10


def zipf_words(size: int, count: int, seed: int) -> Ids:
    """Made-up words as unevenly spread as real ones: the r-th is drawn in proportion to 1 / r."""
    shares = 1 / np.arange(1, size + 1)
    return np.random.default_rng(seed).choice(size, count, p=shares / shares.sum())


def bench_training(size: int, steps: int, seed: int) -> Mapping[str, float]:
    """Words a CPU second of our training, and of the same network trained naively."""
    torch.set_num_threads(1)
    network, config = NetworkConfig(), TrainingConfig(seed=seed)
    a_step = config.streams * config.bptt
    words = zipf_words(size, a_step * (steps + 2) * 2, seed)
    ours = Trainer(words, np.bincount(words, minlength=size), 0, network, config)
    batches = ours.batches.after(0)
    naive = _naive(size, network, config)
    for warm_up in (ours._learn, naive):
        warm_up(next(batches))
    fast = [_cpu(lambda: ours._learn(next(batches))) for _ in range(steps)]
    # The naive step is so dear that a few will do.
    slow = [_cpu(lambda: naive(next(batches))) for _ in range(max(2, steps // 10))]
    return {
        "vocabulary": size,
        "words_per_cpu_second": a_step / median(fast),
        "naive_words_per_cpu_second": a_step / median(slow),
        "ratio": median(slow) / median(fast),
    }


def _naive(size: int, network: NetworkConfig, config: TrainingConfig) -> Callable[..., None]:
    """One step of the same network with dense embedding gradients and a full softmax."""
    embedding = nn.Embedding(size, network.units)
    cell, output = nn.LSTM(network.units, network.units), nn.Linear(network.units, size)
    weights = [*embedding.parameters(), *cell.parameters(), *output.parameters()]
    adagrad = torch.optim.Adagrad(weights, lr=config.learning_rate)

    def learn(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        hidden, _ = cell(embedding(batch[0]))
        scores = output(hidden.flatten(0, 1))
        torch.autograd.backward(nn.functional.cross_entropy(scores, batch[1].flatten()))
        nn.utils.clip_grad_norm_(weights, config.clip)
        adagrad.step()
        adagrad.zero_grad()

    return learn


def bench_inference(size: int, steps: int, seed: int) -> Mapping[str, float]:
    """Microseconds a word of one stream, native and in plain PyTorch, with one thread and with two.

    CPU time with one thread, time of the clock with two. Torch has one in both: with two, one
    stream is slower (`lm/devices.py`).
    """
    network = NetworkConfig()
    encoder, head = Encoder(size, network), build_head(network.units, size, network.cutoffs)
    model = frozen(encoder, head, sentence_end=0)
    plain, adapted = TorchModel(model), AdaptedHead(SharedHead(model))
    words = zipf_words(size, steps, seed)
    _, state = model.start()
    hidden, _ = model.advance(state, words)
    contestants: dict[str, Callable[[], object]] = {
        "torch_states": lambda: plain.advance(state, words),
        "states": lambda: model.advance(state, words),
        "torch_probabilities": lambda: plain.prob(hidden, words),
        "probabilities": lambda: model.prob(hidden, words),
        # The first softmax is there already: the static expert has asked for it.
        "adapted": lambda: adapted.read(hidden, words),
    }
    found: dict[str, float] = {}
    before = _native.threads()
    for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
        set_network_threads(threads)
        best = dict.fromkeys(contestants, np.inf)
        for _ in range(ROUNDS):
            for name, run in contestants.items():
                best[name] = min(best[name], _seconds(run, clock) / steps * 1e6)
        found |= {f"{name}_{threads}_us": us for name, us in best.items()}
        ours = best["states"] + best["probabilities"]
        torchs = best["torch_states"] + best["torch_probabilities"]
        found[f"ratio_{threads}"] = ours / torchs
    set_network_threads(before)
    return found


def bench_tokenizer(text: Iterable[Line], count: int, rounds: int) -> Mapping[str, Any]:
    """Words a CPU second of our tokenizer and of sacremoses on the same lines, and lines alike.

    Each round starts with an empty cache, side by side, so that a busy machine slows both.
    """
    from sacremoses import MosesTokenizer

    lines = [line.text for line in islice(text, count)]
    moses = MosesTokenizer(lang="en")

    def theirs(line: str) -> list[str]:
        words: list[str] = moses.tokenize(line, escape=False)
        return words

    rates: list[tuple[float, float]] = []
    for _ in range(rounds):
        ours = Tokenizer(lowercase=False).words
        rates.append((_words_per_second(ours, lines), _words_per_second(theirs, lines)))
    plain = Tokenizer(lowercase=False).words
    return {
        "lines": len(lines),
        "identical": sum(plain(line) == theirs(line) for line in lines) / max(len(lines), 1),
        "words_per_cpu_second": median(ours for ours, _ in rates),
        "sacremoses_words_per_cpu_second": median(them for _, them in rates),
        "ratio": median(ours / them for ours, them in rates),
    }


def _words_per_second(split: Callable[[str], list[str]], lines: list[str]) -> float:
    began = time.process_time()
    words = sum(len(split(line)) for line in lines)
    return words / (time.process_time() - began)


def _cpu(run: Callable[[], object]) -> float:
    return _seconds(run, time.process_time)


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    run()
    return clock() - began
