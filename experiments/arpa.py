"""N-grams of a text in ARPA's format, for KenLM: interpolated Kneser-Ney, one discount an order."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import log10
from pathlib import Path

Gram = tuple[str, ...]


def write_arpa(sentences: Iterable[Sequence[str]], path: Path, order: int = 3) -> None:
    """Count the n-grams of sentences and write their probabilities and back-off weights.

    A shorter n-gram counts in how many words it was seen behind (Kneser and Ney, 1995); the
    discount is n1 / (n1 + 2 n2). `<unk>` has what the unigrams leave, as one word.
    """
    counts = _counts(sentences, order)
    probs: list[dict[Gram, float]] = []
    backoffs: list[dict[Gram, float]] = []
    for size in range(1, order + 1):
        found, left = _smoothed(counts[size - 1], probs[-1] if probs else None)
        probs.append(found)
        backoffs.append(left)
    with path.open("w", encoding="utf-8") as file:
        file.write("\\data\\\n")
        probs[0][("<unk>",)] = backoffs[0][()] / (len(probs[0]) + 1)
        probs[0][("<s>",)] = 1e-99
        for size, found in enumerate(probs, 1):
            file.write(f"ngram {size}={len(found)}\n")
        for size, found in enumerate(probs, 1):
            file.write(f"\n\\{size}-grams:\n")
            longer = backoffs[size] if size < order else {}
            for gram, prob in found.items():
                line = f"{log10(prob):.6f}\t{' '.join(gram)}"
                if size < order:
                    line += f"\t{log10(longer.get(gram, 1.0)):.6f}"
                file.write(line + "\n")
        file.write("\n\\end\\\n")


def _counts(sentences: Iterable[Sequence[str]], order: int) -> list[Counter[Gram]]:
    """The n-grams of each length: those of the longest by occurrence, others by what precedes."""
    longest: Counter[Gram] = Counter()
    begun: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        words = ("<s>", *sentence, "</s>")
        longest.update(zip(*(words[i:] for i in range(order)), strict=False))
        # Nothing precedes the beginning: what starts there counts as often as it comes.
        for size in range(2, min(order, len(words) + 1)):
            begun[size - 1][words[:size]] += 1
    counts = [longest]
    for size in range(order - 1, 0, -1):
        shorter = Counter(gram[1:] for gram in counts[0])
        shorter.update(begun[size - 1])
        counts.insert(0, shorter)
    return counts


def _smoothed(
    counts: Counter[Gram], shorter: dict[Gram, float] | None
) -> tuple[dict[Gram, float], dict[Gram, float]]:
    """Probabilities of n-grams, and what each context leaves to the shorter ones."""
    met = Counter(counts.values())
    discount = met[1] / (met[1] + 2 * met[2]) if met[1] and met[2] else 0.5
    totals: defaultdict[Gram, int] = defaultdict(int)
    kinds: defaultdict[Gram, int] = defaultdict(int)
    for gram, count in counts.items():
        totals[gram[:-1]] += count
        kinds[gram[:-1]] += 1
    left = {context: discount * kinds[context] / totals[context] for context in totals}
    even = 1 / (len(counts) + 1)
    found = {}
    for gram, count in counts.items():
        context = gram[:-1]
        below = even if shorter is None else shorter[gram[1:]]
        found[gram] = (count - discount) / totals[context] + left[context] * below
    return found, left
