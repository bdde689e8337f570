"""How many threads the network uses."""

import torch


def set_torch_threads(threads: int) -> None:
    """Let torch use so many threads for one operation."""
    torch.set_num_threads(threads)
