"""How fast the network is, beside the same done plainly, in one run.

Times are CPU seconds of one thread, the best of several rounds that alternate between the
contestants: on a busy machine that is what repeats.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
import torch
from torch import nn

from unbounded.lm.encoder import Encoder, NetworkConfig
from unbounded.lm.head import build_head
from unbounded.lm.model import RecurrentModel
from unbounded.lm.training import Trainer, TrainingConfig
from unbounded.types import Ids

ROUNDS = 5


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
    """Microseconds a word of one stream, beside a bare LSTM and torch's adaptive softmax."""
    torch.set_num_threads(1)
    network = NetworkConfig()
    encoder, head = Encoder(size, network), build_head(network.units, size, network.cutoffs)
    model = RecurrentModel(encoder, head, sentence_end=0)
    words = zipf_words(size, steps, seed)
    _, state = model.start()
    hidden, _ = model.advance(state, words)
    vectors = encoder.embedding(torch.from_numpy(words))[:, None].contiguous()
    begin = encoder.zero_state(1)
    rows, targets = torch.from_numpy(hidden), torch.from_numpy(words)

    def bare() -> None:
        with torch.inference_mode():
            encoder.cell(vectors, (begin[0], begin[1]))

    def torchs() -> None:
        with torch.inference_mode():
            head(rows, targets)

    contestants: dict[str, Callable[[], object]] = {
        "states_us": lambda: model.advance(state, words),
        "bare_lstm_us": bare,
        "probabilities_us": lambda: model.prob(hidden, words),
        "torch_softmax_us": torchs,
    }
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            best[name] = min(best[name], _cpu(run) / steps * 1e6)
    return {
        **best,
        "states_ratio": best["states_us"] / best["bare_lstm_us"],
        "probabilities_ratio": best["probabilities_us"] / best["torch_softmax_us"],
    }


def _cpu(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
