"""Which kernel, how sharp, how many neighbors, which key: many caches from one search a block.

    python experiments/kernels.py MODEL TEXT --name news2008 [--tokens 100k] [--index flat]

Every line is static + uniform + one cache, weights learned online, as in the rows of `evaluate`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from record import record

from unbounded.config import INDEXES, set_threads
from unbounded.console import meter, parse_size
from unbounded.corpus import Block, Reader, blocks, read_sentences
from unbounded.lm import load_model
from unbounded.memory import Memory, Window
from unbounded.predict import Kernel, Online, Static, Uniform
from unbounded.predict.distribution import Sparse
from unbounded.score.metrics import Tally, surprise
from unbounded.types import Table

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def count(row: tuple[Online, Tally], table: Table) -> None:
    """Score a table with a row's weights, and add it up."""
    nats = surprise(row[0].score(table).prob)
    row[1].add(float(nats.sum()), len(nats), 0)


def main() -> None:
    """Read the text once under every kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--name", required=True)
    parser.add_argument("--tokens", type=parse_size, default=100_000)
    parser.add_argument("--index", choices=[*INDEXES, "window"], default="flat")
    parser.add_argument("--k", type=parse_size, default=1024)
    parser.add_argument("--normalize", action="store_true")
    given = parser.parse_args()
    set_threads(1)
    model = load_model(given.model)
    met = model.vocabulary.copy()

    def stream() -> Iterator[Block]:
        return blocks(read_sentences(Reader(given.text), model.tokenizer), 512, given.tokens)

    for block in stream():
        met.encode(block.words)
    size, vocabulary = len(met), model.vocabulary.copy()
    index = (
        Window(model.lm.width) if given.index == "window" else INDEXES[given.index](model.lm.width)
    )
    memory = Memory(index)
    kernels = {f"gaussian {s:g}": Kernel("gaussian", s) for s in SHARPNESS}
    kernels |= {f"epanechnikov {s:g}": Kernel("epanechnikov", s) for s in (1.0, 2.0, 4.0)}
    asked = {(name, k): kernel for name, kernel in kernels.items() for k in (128, 256, given.k)}
    static, uniform = Static(model.lm), Uniform(size)
    plain = (Online(2), Tally())
    rows = {key: (Online(3), Tally()) for key in asked}
    family = (Online(2 + len(SHARPNESS)), Tally())
    hidden, state = model.lm.start()
    with meter("reading", given.tokens) as show:
        for block in stream():
            ids = vocabulary.encode(block.words)
            after, state = model.lm.advance(state, ids)
            all_hidden = np.concatenate([hidden, after])
            before, hidden = all_hidden[:-1], all_hidden[-1:]
            keys = before
            if given.normalize:
                keys = before / np.linalg.norm(before, axis=1, keepdims=True)
            found = memory.search_block(keys, ids, given.k)
            memory.add(keys, ids)
            base = np.stack([static.score(before, ids), uniform.score(before, ids)], axis=1)
            count(plain, base)
            columns = {}
            for (name, k), kernel in asked.items():
                votes = Sparse(found.words[:, :k], kernel.weights(found.squared[:, :k]), size)
                columns[name, k] = votes.prob(ids)
                table = np.concatenate([base, columns[name, k][:, None]], axis=1)
                count(rows[name, k], table)
            every = [columns[f"gaussian {s:g}", given.k] for s in SHARPNESS]
            table = np.concatenate([base, np.stack(every, axis=1)], axis=1)
            count(family, table)
            show(plain[1].tokens, f"static {plain[1].perplexity:,.1f}")
    result = {
        "text": given.name,
        "tokens": plain[1].tokens,
        "index": given.index,
        "normalize": given.normalize,
        "static": plain[1].perplexity,
        "family": family[1].perplexity,
        "kernels": {f"{name}, k {k}": rows[name, k][1].perplexity for name, k in asked},
    }
    record("kernels", result)
    print(f"{given.name}: static {result['static']:.2f}, all Gaussians {result['family']:.2f}")
    for name, perplexity in result["kernels"].items():
        print(f"  {name:<28}{perplexity:>9.2f}")


if __name__ == "__main__":
    main()
