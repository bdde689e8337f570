"""Words per second of CPU time: our tokenizer beside sacremoses, in one run, on the same lines.

    python benchmarks/bench_tokenizer.py [--lines N] [--rounds N] [TEXT ...]

Without TEXT it reads the built-in demo texts. Each round starts with an empty cache; the median
counts, and the spread is shown.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from itertools import islice

from sacremoses import MosesTokenizer

from unbounded.corpus import Line, Reader, Tokenizer, demo_text


def words_per_second(split: Callable[[str], list[str]], lines: list[str]) -> float:
    start = time.process_time()
    words = sum(len(split(line)) for line in lines)
    return words / (time.process_time() - start)


def compare(name: str, text: Iterable[Line], count: int, rounds: int) -> None:
    lines = [line.text for line in islice(text, count)]
    ours, theirs = [], []
    reference = MosesTokenizer(lang="en")
    for _ in range(rounds):
        # Side by side, so that a busy machine slows both.
        ours.append(words_per_second(Tokenizer(lowercase=False).words, lines))
        theirs.append(words_per_second(lambda x: reference.tokenize(x, escape=False), lines))
    plain = Tokenizer(lowercase=False)
    same = sum(plain.words(line) == reference.tokenize(line, escape=False) for line in lines)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{name}: {len(lines):,} lines, {same / len(lines):.3%} identical; "
        f"ours {statistics.median(ours):,.0f} words/s ({min(ours):,.0f} to {max(ours):,.0f}), "
        f"sacremoses {statistics.median(theirs):,.0f}, ratio {ratio:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.texts:
        compare(name, Reader([name]), options.lines, options.rounds)
    for name in [] if options.texts else ["sotu", "chat"]:
        compare(name, demo_text(name), options.lines, options.rounds)


if __name__ == "__main__":
    main()
