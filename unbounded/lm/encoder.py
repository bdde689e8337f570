"""Embedding and recurrent cell: word ids in, hidden states out."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from unbounded.errors import SettingError

CELLS: dict[str, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "elman": nn.RNN,
}


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
        if self.units < 1:
            raise SettingError(f"units is {self.units}; it must be at least 1")
        ends = self.cutoffs
        if not ends or ends[0] < 1 or any(a >= b for a, b in pairwise(ends)):
            raise SettingError(
                f"cutoffs are {', '.join(map(str, ends)) or 'none'}; they must be at least one, "
                "each above the one before"
            )


class Encoder(nn.Module):
    """Reads word ids and returns the hidden state after each; row `size` is the `<unk>` input."""

    def __init__(self, size: int, config: NetworkConfig) -> None:
        super().__init__()
        self.size = size
        self.embedding = nn.Embedding(size + 1, config.units, sparse=True)
        self.cell = CELLS[config.cell](config.units, config.units)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew from `generator`."""
        bound = self.cell.hidden_size**-0.5
        with torch.no_grad():
            self.embedding.weight.uniform_(-0.1, 0.1, generator=generator)
            for weight in self.cell.parameters():
                weight.uniform_(-bound, bound, generator=generator)

    def forward(
        self, vectors: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the cell over embedded words, (steps, streams, units); the state is a value."""
        if isinstance(self.cell, nn.LSTM):
            hidden, new = self.cell(vectors, (state[0], state[1]))
            return hidden, new
        hidden, last = self.cell(vectors, state[0])
        return hidden, (last,)

    def zero_state(self, streams: int) -> tuple[Tensor, ...]:
        """The state before anything was read."""
        zeros = torch.zeros(1, streams, self.cell.hidden_size)
        return (zeros, zeros.clone()) if isinstance(self.cell, nn.LSTM) else (zeros,)
