"""What can be chosen of a network, of its training and of how a transformer reads."""

from dataclasses import dataclass
from itertools import pairwise

from unbounded.errors import SettingError, check_settings

CELLS = ("lstm", "gru", "elman")

KEYS = ("output", "feedforward")
"""What the memory is searched by: the input of the output layer, or of the last feed-forward."""

LONGEST = 1024
"""Pieces of context at most, unless more are asked for."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of the network; defaults are the paper's, with the sentence each comes from."""

    cell: str = "lstm"
    """ "we focus on this structure of recurrent networks": LSTM; GRU and Elman are named too."""

    units: int = 256
    """ "recurrent neural networks with 256 LSTM hidden units" """

    cutoffs: tuple[int, ...] = (2_000, 10_000, 40_000)
    """ "Because of the large vocabulary sizes, we use the adaptative softmax": where its clusters
    end is left open; chosen by measuring (docs/decisions.md, 4)."""

    def __post_init__(self) -> None:
        if self.cell not in CELLS:
            raise SettingError(f"cell {self.cell!r} is unknown; use {', '.join(CELLS)}")
        check_settings(self, least_one="units")
        ends = self.cutoffs
        if not ends or ends[0] < 1 or any(a >= b for a, b in pairwise(ends)):
            raise SettingError(
                f"cutoffs are {', '.join(map(str, ends)) or 'none'}; they must be at least one, "
                "each above the one before"
            )

    def ends(self, size: int) -> tuple[int, ...]:
        """Where the clusters of an adaptive softmax over `size` words end, the last at the last.

        Cut-offs outside the vocabulary are left out.
        """
        inside = [cutoff for cutoff in self.cutoffs if cutoff < size]
        # Torch wants at least one cluster besides the head: a small vocabulary is halved. Each
        # sees a quarter of the units of the one before, so few units have room for few clusters.
        deepest = max((self.units.bit_length() - 1) // 2, 1)
        return (*(inside[:deepest] or [max(1, size // 2)]), size)


Shape = tuple[int, ...]


def weight_shapes(network: NetworkConfig, size: int) -> dict[str, Shape]:
    """All weights of a network of `size` words by the names that torch has for them."""
    units, ends = network.units, network.ends(size)
    rows = units * {"lstm": 4, "gru": 3, "elman": 1}[network.cell]
    shapes: dict[str, Shape] = {
        "embedding": (size + 1, units),
        **{f"cell.weight_{part}_l0": (rows, units) for part in ("ih", "hh")},
        **{f"cell.bias_{part}_l0": (rows,) for part in ("ih", "hh")},
        "head.head.weight": (ends[0] + len(ends) - 1, units),
    }
    for i, (start, end) in enumerate(pairwise(ends)):
        narrow = units // 4 ** (i + 1) if units >= 4 else units
        shapes[f"head.tail.{i}.0.weight"] = (narrow, units)
        shapes[f"head.tail.{i}.1.weight"] = (end - start, narrow)
    return shapes


@dataclass(frozen=True)
class TrainingConfig:
    """How the network is trained: by the paper's words, but for what measured better here."""

    epochs: int = 8
    """The paper's are 10."""

    learning_rate: float = 0.1
    """Adagrad's; the paper's is 0.2 (docs/decisions.md, 104)."""

    bptt: int = 20
    """ "backpropagation through time (BPTT) over 20 timesteps" """

    streams: int = 32
    """Parallel streams in a step; the paper does not say (docs/decisions.md, 15)."""

    dropout: float = 0.3
    """Share of embedding and output units dropped; chosen by measuring (docs/log.md). The paper
    does not mention any; 0 is its setting to the letter."""

    unknown: float = 0.5
    """How often a word that occurs once in training is read as `<unk>`, so that it has a vector."""

    clip: float = 1.0
    """Largest norm of a step's gradient."""

    patience: int = 2
    """Stop after so many epochs without a better validation; the best epoch is kept."""

    seed: int = 1

    def __post_init__(self) -> None:
        whole = "epochs bptt streams patience"
        check_settings(self, least_one=whole, above_zero="learning_rate clip")
        for name in ("dropout", "unknown"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be in [0, 1)")


PAPER_TRAINING = TrainingConfig(epochs=10, learning_rate=0.2, dropout=0.0)
""" "using the Adagrad algorithm with a learning rate of 0.2 and 10 epochs", and nothing that the
paper does not name."""


@dataclass(frozen=True)
class Progress:
    """One line of the training curve; perplexities are over words that the network knows."""

    epoch: int
    step: int
    words: int
    train_perplexity: float
    valid_perplexity: float | None
    seconds: float


@dataclass(frozen=True)
class TransformerConfig:
    """How a transformer reads a text that is longer than its context.

    A context grows to `context` pieces; then a new one begins with a start mark and the last `keep`
    pieces of the old. Where that happens depends on nothing but how much was read, so cutting the
    stream changes nothing, and every piece but the first has at least `keep` pieces before it.
    """

    context: int | None = None
    """Pieces; None is what the model was made for, at most `LONGEST`."""

    keep: int | None = None
    """Pieces that a new context begins with; None is a quarter of it."""

    key: str = "output"

    device: str = "cpu"
    """What it is computed on: cpu, cuda or mps. A network that is given is used where it lies."""

    def __post_init__(self) -> None:
        if self.key not in KEYS:
            raise SettingError(f"key {self.key!r} is unknown; use {' or '.join(KEYS)}")
        if self.context is not None and self.context < 2:
            raise SettingError(f"a context of {self.context} pieces; at least 2 are needed")

    def fitted(self, longest: int | None) -> "TransformerConfig":
        """The same with all numbers known, for a network of so many positions."""
        context = self.context or min(longest or LONGEST, LONGEST)
        if longest is not None and context > longest:
            raise SettingError(
                f"a context of {context:,} pieces for a network of {longest:,}; ask for less"
            )
        keep = context // 4 if self.keep is None else self.keep
        if not 0 <= keep < context - 1:
            raise SettingError(
                f"{keep} pieces kept of a context of {context}; keep at least 0, and leave 2 free"
            )
        return TransformerConfig(context, keep, self.key, self.device)
