"""The figures of docs/scale.md, from those of `python -m benchmarks cluster --json FILE`.

python benchmarks/scale_on_paper.py benchmarks/results/cluster-1M.json
"""

import json
import sys
from pathlib import Path

from benchmarks.scale import Constants, machines, words_per_second

BLOCKS = (64, 256, 1024)


def main() -> None:
    figures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    constants = Constants.fitted(figures)
    print(constants)
    print("alone, µs a query:", {n: round(1e6 * s, 1) for n, s in figures["alone"].items()})
    print("\n| entries | machines | 0.2 ms | 1 ms | 5 ms | four times the shards, 0.2 ms | cost |")
    for entries in (10**8, 10**9, 10**10):
        count = machines(constants, entries)
        rates = [
            words_per_second(constants, entries, count, latency=ms / 1e3) for ms in (0.2, 1, 5)
        ]
        wide = words_per_second(constants, entries, 4 * count, latency=0.0002)
        cost = count * 1e6 / rates[0] / 3600
        print(
            f"| {entries:.0e} | {count} | "
            + " | ".join(f"{rate:,.0f}" for rate in (*rates, wide))
            + f" | {cost:.2f} |"
        )
    print("\nmeasured and on paper, one core for all shards, words a second by block:")
    for row in figures["rows"][1:]:
        for block in BLOCKS:
            paper = words_per_second(
                constants, figures["entries"], row["shards"], block=block, cores=1
            )
            there = row["words_per_second"][str(block)]
            print(f"{row['name']}, {block}: {there:,.0f}, {paper:,.0f}, {paper / there:.2f} times")


if __name__ == "__main__":
    main()
