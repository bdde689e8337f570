"""Adagrad over BPTT: training ids in, a network out, resumable at any step."""

import math
import time
from collections.abc import Generator, Iterator
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unbounded.errors import TrainingError
from unbounded.lm.pytorch import Encoder, build_head, dense_weights, reset_head, word_log_probs
from unbounded.lm.settings import NetworkConfig, Progress, TrainingConfig
from unbounded.shapes import Int
from unbounded.types import Ids


class Batch(NamedTuple):
    """Inputs and targets of one step, (bptt, streams); the targets are the inputs' next words."""

    inputs: Tensor
    targets: Tensor


class Batches:
    """The training text as `streams` parallel streams, each read in order, `bptt` words a step.

    Every word of the text is a target once; the last few that do not fill a stream are left out.

    >>> import numpy as np
    >>> batches = Batches(np.arange(1, 11), streams=2, bptt=3, sentence_end=0)
    >>> len(batches), [batch.targets.T.tolist() for batch in batches.after(0)]
    (2, [[[1, 2, 3], [6, 7, 8]], [[4, 5], [9, 10]]])
    >>> [batch.inputs.T.tolist() for batch in batches.after(1)]
    [[[3, 4], [8, 9]]]
    """

    def __init__(self, words: Ids, streams: int, bptt: int, sentence_end: int) -> None:
        self.streams = streams
        self.bptt = bptt
        self.length = len(words) // streams
        targets = torch.from_numpy(words[: self.length * streams]).long()
        inputs = torch.cat([torch.tensor([sentence_end]), targets[:-1]])
        self._targets = targets.view(streams, self.length).T.contiguous()
        self._inputs = inputs.view(streams, self.length).T.contiguous()

    def __len__(self) -> int:
        return -(-self.length // self.bptt)

    def after(self, done: int) -> Iterator[Batch]:
        """The batches of one pass, without the first `done`."""
        for start in range(done * self.bptt, self.length, self.bptt):
            stretch = slice(start, start + self.bptt)
            yield Batch(self._inputs[stretch], self._targets[stretch])


@final
class Trainer:
    """One network in training: weights, Adagrad's sums, and how far it has come.

    The embedding is updated by hand, row by row: a step touches the words it read and no others.
    All randomness of a step is drawn from the seed and the step's number, so that a resumed run
    and an uninterrupted one are the same.
    """

    def __init__(
        self,
        words: Ids,
        counts: Int[np.ndarray, " size"],
        sentence_end: int,
        network: NetworkConfig,
        config: TrainingConfig,
        device: torch.device = torch.device("cpu"),
    ) -> None:
        if len(words) < config.streams * 2:
            raise TrainingError(
                f"the training text has {len(words)} words; {config.streams * 2} are needed "
                f"for {config.streams} streams: give more text, or lower --streams"
            )
        self.config = config
        self.network = network
        self.batches = Batches(words, config.streams, config.bptt, sentence_end)
        self.sentence_end = sentence_end
        size = len(counts)
        self.encoder = Encoder(size, network)
        self.head = build_head(network.units, size, network.cutoffs)
        generator = torch.Generator().manual_seed(config.seed)
        self.encoder.reset_parameters(generator)
        reset_head(self.head, generator)
        # Drawn before they move: all devices begin with the same weights.
        self.device = device
        self.encoder.to(device)
        self.head.to(device)
        # Dense weights by name: everything but the embedding.
        self.dense = dense_weights(self.encoder, self.head)
        self.adagrad = torch.optim.Adagrad(
            self.dense.values(), lr=config.learning_rate, fused=device.type == "cpu"
        )
        self.embedding = self.encoder.embedding.weight.requires_grad_(False)
        self.embedding_sums = torch.zeros_like(self.embedding)
        self._limited = bool((words >= size).any())
        self._rare = torch.cat([torch.from_numpy(counts == 1), torch.tensor([False])])
        self.state = self.encoder.zero_state(config.streams)
        self.epoch = 0
        self.step = 0  # of this epoch
        self.seconds = 0.0
        self.nats = 0.0
        self.best_valid = math.inf
        self.best_epoch = 0
        self.best: dict[str, Tensor] = {}
        self.curve: list[Progress] = []

    @property
    def words_done(self) -> int:
        """How many words were read so far, over all epochs."""
        steps = min(self.step * self.config.bptt, self.batches.length)
        return (self.epoch * self.batches.length + steps) * self.config.streams

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or validation has stopped getting better."""
        waited = self.epoch - self.best_epoch
        stalled = self.best_valid < math.inf and waited >= self.config.patience
        return self.epoch >= self.config.epochs or stalled

    def weights(self) -> dict[str, Tensor]:
        """All weights by name, not copied."""
        return {"embedding": self.embedding, **{k: w.detach() for k, w in self.dense.items()}}

    def run(self, valid: Ids, every: int = 50) -> Generator[Progress]:
        """Train to the end, yielding every `every` steps and at the end of each epoch."""
        while not self.finished:
            since, nats, words = time.perf_counter(), 0.0, 0
            for batch in self.batches.after(self.step):
                loss = self._learn(batch)
                if not math.isfinite(loss):
                    raise TrainingError(
                        f"the loss is no longer a number at epoch {self.epoch + 1}, "
                        f"step {self.step}: "
                        f"try a lower --learning-rate than {self.config.learning_rate}"
                    )
                nats += loss * batch.targets.numel()
                self.nats += loss * batch.targets.numel()
                words += batch.targets.numel()
                self.step += 1
                if self.step % every == 0:
                    now = time.perf_counter()
                    self.seconds += now - since
                    yield self._progress(nats / words, None)
                    since, nats, words = time.perf_counter(), 0.0, 0
            yield self._end_epoch(valid, since)

    def _progress(self, nats: float, valid: float | None) -> Progress:
        return Progress(
            epoch=self.epoch + (valid is None),
            step=self.step,
            words=self.words_done,
            train_perplexity=math.exp(min(nats, 700.0)),
            valid_perplexity=valid,
            seconds=self.seconds,
        )

    def _end_epoch(self, valid: Ids, since: float) -> Progress:
        train = self.nats / (self.batches.length * self.config.streams)
        self.epoch, self.step, self.nats = self.epoch + 1, 0, 0.0
        self.state = self.encoder.zero_state(self.config.streams)
        score = self._valid_nats(valid)
        if not math.isfinite(score):
            raise TrainingError(
                f"the validation is no longer a number after epoch {self.epoch}: "
                f"try a lower --learning-rate than {self.config.learning_rate}"
            )
        if score < self.best_valid:
            self.best_epoch, self.best_valid = self.epoch, score
            self.best = {name: weight.clone() for name, weight in self.weights().items()}
        self.seconds += time.perf_counter() - since
        self.curve.append(self._progress(train, math.exp(min(score, 700.0))))
        return self.curve[-1]

    def _learn(self, batch: Batch) -> float:
        """One step: forward over one stretch, backward, update; returns nats a word."""
        config = self.config
        number = self.epoch * len(self.batches) + self.step
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + number)
        inputs = batch.inputs
        if config.unknown:
            hide = self._rare[inputs] & (
                torch.rand(inputs.shape, generator=generator) < config.unknown
            )
            inputs = inputs.masked_fill(hide, self.encoder.size)
        rows, place = torch.unique(inputs.to(self.device), return_inverse=True)
        table = self.embedding[rows].requires_grad_()
        vectors = _drop(functional.embedding(place, table), config.dropout, generator)
        hidden, state = self.encoder(vectors, self.state)
        self.state = tuple(part.detach() for part in state)
        hidden = _drop(hidden, config.dropout, generator)
        hidden, targets = hidden.flatten(0, 1), batch.targets.flatten().to(self.device)
        if self._limited:
            known = targets < self.encoder.size
            hidden, targets = hidden[known], targets[known]
        loss = self.head(hidden, targets).loss
        loss.backward()
        norm = nn.utils.clip_grad_norm_([table, *self.dense.values()], config.clip)
        if not torch.isfinite(norm):
            return math.nan
        assert table.grad is not None
        sums = self.embedding_sums[rows] + table.grad.square()
        self.embedding_sums[rows] = sums
        self.embedding[rows] -= config.learning_rate * table.grad / (sums.sqrt() + 1e-10)
        self.adagrad.step()
        self.adagrad.zero_grad()
        return float(loss.item())

    @torch.inference_mode()
    def _valid_nats(self, valid: Ids) -> float:
        """Nats a word over the known words of `valid`, read in parallel streams."""
        size = self.encoder.size
        streams = min(self.config.streams, max(1, len(valid) // 200))
        state, nats, known_words = self.encoder.zero_state(streams), 0.0, 0
        for batch in Batches(np.minimum(valid, size), streams, 100, self.sentence_end).after(0):
            inputs, targets = (part.to(self.device) for part in batch)
            hidden, state = self.encoder(self.encoder.embedding(inputs), state)
            known = targets < size
            found = word_log_probs(self.head, hidden[known], targets[known])
            nats -= float(found.cpu().double().sum())
            known_words += len(found)
        if known_words == 0:
            raise TrainingError(
                "the validation text has no word of the training text: give another"
            )
        return nats / known_words


def _drop(values: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Inverted dropout drawn from `generator`."""
    if share == 0:
        return values
    # Drawn on the processor, whose generator is the same everywhere.
    keep = torch.rand(values.shape, generator=generator) >= share
    return values * keep.to(values.device) / (1 - share)
