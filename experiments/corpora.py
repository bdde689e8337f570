"""Shuffle a text by line with a stated seed and split it, so that no line is on both sides.

    python experiments/corpora.py TEXT --out FOLDER [--seed 1] [--train 2M] [--valid 100k]

writes train.txt, valid.txt and test.txt. Token counts include the sentence end.
"""

import argparse
import random
from pathlib import Path

from unbounded.console import parse_size
from unbounded.corpus import Tokenizer, read_lines


def main() -> None:
    """Split one text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=parse_size, default=2_000_000)
    parser.add_argument("--valid", type=parse_size, default=100_000)
    given = parser.parse_args()
    lines = [line.text for line in read_lines(given.text)]
    random.Random(given.seed).shuffle(lines)
    tokenizer = Tokenizer()
    given.out.mkdir(parents=True, exist_ok=True)
    rest = iter(lines)
    for name, wanted in (("train", given.train), ("valid", given.valid), ("test", None)):
        with (given.out / f"{name}.txt").open("w", encoding="utf-8") as file:
            count = 0
            for line in rest:
                file.write(line + "\n")
                count += len(tokenizer.words(line)) + 1
                if wanted is not None and count >= wanted:
                    break
        print(f"{name}: {count:,} tokens")


if __name__ == "__main__":
    main()
