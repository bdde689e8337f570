"""Everything together against the network alone, on texts made up to mislead what learns.

python -m experiments.hostile FOLDER NEAR FAR --words 20k
"""

import json
from collections.abc import Iterator
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.results import circumstances
from unbounded.cli.main import run
from unbounded.console import parse_size
from unbounded.corpus import SENTENCE_END, Reader, read_sentences
from unbounded.experts import Static
from unbounded.lm import Pretrained, load_model
from unbounded.mixture import Online
from unbounded.presets import available, build_preset

TURN, PAGE = 50, 500
"""Words before the domain changes, and words of the page that comes again and again."""


def texts(model: Pretrained, near: list[str], far: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Made-up texts, each as long as the two real ones, by what is wrong with them."""
    size, random = len(near), np.random.default_rng(1)
    known = model.vocabulary.decode(np.arange(model.lm.base_size))
    letters = random.integers(97, 123, (size, 5)).astype(np.uint8)
    yield "two domains by turns", _by_turns(near, far)
    yield "any word of the network", [known[i] for i in random.integers(0, len(known), size)]
    yield "words in any order", [near[i] for i in random.permutation(size)]
    yield "one word", ["the"] * size
    yield "one new word", ["zorble"] * size
    yield "one page", list(islice(cycle(far[:PAGE]), size))
    yield "any letters", [row.tobytes().decode() for row in letters]
    yield "every word twice", [word for word in far[: size // 2] for _ in range(2)]
    yield "every sentence backwards", _backwards(near)
    yield "what the network itself says", sampled(model, size)
    yield "the same, and far by turns", _by_turns(sampled(model, size), far)
    yield "near", near
    yield "far", far


def sampled(model: Pretrained, size: int, seed: int = 1) -> list[str]:
    """A text that nobody can foresee better than the frozen network: drawn from it."""
    random, found = np.random.default_rng(seed), []
    (hidden, state), static = model.lm.start(), Static(model.lm)
    for _ in range(size):
        chances = np.cumsum(static.predict(hidden).dense(model.lm.base_size)[0])
        found.append(np.searchsorted(chances, random.random() * chances[-1], side="right"))
        hidden, state = model.lm.advance(state, np.array(found[-1:]))
    return model.vocabulary.decode(np.array(found))


def _by_turns(one: list[str], other: list[str]) -> list[str]:
    """So many words of each in turn, as long as one of them."""
    starts = range(0, len(one), 2 * TURN)
    return [word for at in starts for text in (one, other) for word in text[at : at + TURN]]


def _backwards(words: list[str]) -> list[str]:
    found: list[str] = []
    sentence: list[str] = []
    for word in words:
        if word == SENTENCE_END:
            found += [*reversed(sentence), word]
            sentence = []
        else:
            sentence.append(word)
    return [*found, *reversed(sentence)]


def against_static(model: Pretrained, words: list[str], block: int = 8192) -> tuple[float, float]:
    """Perplexities of a text under the network alone and under everything, open protocol."""
    online, alone = build_preset(model, "full"), available(model, "static")
    static, nats = Online(len(alone)), np.zeros(2)
    for start in range(0, len(words), block):
        reading = online.read(words[start : start + block])
        columns = [reading.experts.index(name) for name in alone]
        probs = static.score(reading.table[:, columns]).prob, reading.prob
        nats -= np.log(probs).sum(axis=1)
    first, second = np.exp(nats / len(words)).tolist()
    return first, second


def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model with its text.")],
    near: Annotated[Path, typer.Argument(metavar="NEAR", help="Text like the model's.")],
    far: Annotated[Path, typer.Argument(metavar="FAR", help="Text unlike it.")],
    words: Annotated[str, typer.Option(help="Words of each text. Takes k and M.")] = "20k",
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
) -> None:
    """Read texts that are made up to mislead, and write both perplexities of each."""
    model, size = load_model(folder), parse_size(words)
    read = (read_sentences(Reader([path]), model.tokenizer) for path in (near, far))
    real = [list(islice(chain.from_iterable(s.words for s in part), size)) for part in read]
    found = {}
    for name, text in texts(model, *real):
        static, full = against_static(model, text)
        found[name] = {"words": len(text), "static": static, "full": full}
        typer.echo(f"{name:26} {static:12,.2f} {full:12,.2f} {full / static - 1:+9.3%}")
    result = {"texts": found, "trained": model.config["training"], **circumstances(root.absolute())}
    target = root / "experiments" / "results" / "hostile.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    commands.command()(main)
    run(commands, "python -m experiments.hostile")
