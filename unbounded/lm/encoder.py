"""Embedding and recurrent cell: word ids in, hidden states out."""

import torch
from torch import Tensor, nn

from unbounded.lm.settings import NetworkConfig

_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "elman": nn.RNN,
}


class Encoder(nn.Module):
    """Reads word ids and returns the hidden state after each; row `size` is the `<unk>` input."""

    def __init__(self, size: int, config: NetworkConfig) -> None:
        super().__init__()
        self.size, self.kind = size, config.cell
        self.embedding = nn.Embedding(size + 1, config.units, sparse=True)
        self.cell = _CELLS[config.cell](config.units, config.units)

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
