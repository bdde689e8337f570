"""Durable reading beside the same without a store, by turns, in one run; and what a restart takes.

    python benchmarks/bench_store.py MODEL TEXT [--words N] [--folder DIR]

Times are wall clock, a sync included. The restarted memory must score as the one without a store.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import unbounded
from unbounded.corpus import Line, Reader, blocks, read_sentences
from unbounded.lm import Pretrained, load_model
from unbounded.memory.learned import LearnedState
from unbounded.memory.local import LocalBackend
from unbounded.presets import MemoryConfig, set_threads

STRETCH = 10_000


def stretches(model: Pretrained, text: str, words: int) -> Iterator[list[Line]]:
    """Lines of about `STRETCH` words each."""
    lines, count, total = list[Line](), 0, 0
    for line in Reader([text]):
        lines.append(line)
        length = len(model.tokenizer.words(line.text)) + 1
        count, total = count + length, total + length
        if count >= STRETCH:
            yield lines
            lines, count = [], 0
        if total >= words:
            break
    if lines:
        yield lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text")
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--folder", help="where the memory goes [default: a temporary one]")
    given = parser.parse_args()
    set_threads(1)
    model = load_model(given.model)
    place = Path(tempfile.mkdtemp(dir=given.folder))
    memory = unbounded.open(place / "memory", model)
    mind = LearnedState(model, MemoryConfig())
    plain = durable = 0.0
    words = 0
    for number, lines in enumerate(stretches(model, given.text, given.words)):
        for turn in (number % 2, 1 - number % 2):
            began = time.perf_counter()
            if turn:
                for block in blocks(read_sentences(lines, model.tokenizer), 512):
                    mind.read(block.words)
                plain += time.perf_counter() - began
            else:
                words += sum(len(reading.words) for reading in memory.follow(lines))
                durable += time.perf_counter() - began
    print(
        f"{words:,} words: {1e6 * durable / words:.1f} µs a word durable, "
        f"{1e6 * plain / words:.1f} without a store, ratio {plain / durable:.3f}"
    )
    memory.close()
    began = time.perf_counter()
    with unbounded.open(place / "memory", model) as again:
        seconds = time.perf_counter() - began
        backend = again.backend
        assert isinstance(backend, LocalBackend)
        text = "what was said before the restart is said after it"
        asked = model.tokenizer.words(text)
        same = np.array_equal(backend.learned.read(asked).prob, mind.read(asked).prob)
        print(f"restart in {seconds:.2f} s, scores {'equal to the bit' if same else 'DIFFER'}")
        backend.store.close()
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
