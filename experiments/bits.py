"""The table of bits per character: compressors, and our rows under the open protocol."""

import math

from experiments.markup import Entry, Grid, Line, Part
from experiments.results import Found
from experiments.tables import domain_order, notes, spoken
from unbounded.evaluation.rows import TITLES

COMPARED = (
    "Nothing of the future is known: where the tables above have a uniform over the words of "
    "training and test text, OOV words are here spelled by a character model that has read the "
    "network’s vocabulary. So these figures stand in no table with those above. Compressors start "
    "from what our model starts from: what is counted is how much longer the test text makes the "
    "packed training text. Both are given the same text: the words after tokenization, a space "
    "between them, a line end after a sentence."
)


def bits_grid(found: Found) -> Grid:
    """One part a training domain, one line a compressor or row, one column a test domain."""
    trains = list(dict.fromkeys(sorted((train for train, _ in found.cells), key=domain_order)))
    tests = list(dict.fromkeys(sorted((test for _, test in found.cells), key=domain_order)))
    parts = []
    for train in trains:
        bits = {test: _bits(found, train, test) for test in tests}
        lines = [
            Line(title, tuple(_entry(bits[test], title) for test in tests))
            for title in dict.fromkeys(title for cell in bits.values() for title in cell)
        ]
        parts.append(Part(f"trained on {spoken(train)}", tuple(lines)))
    return Grid(
        "Bits per character of the test text, given the training text",
        ("model or compressor", *map(spoken, tests)),
        tuple(parts),
        notes(found),
    )


def _bits(found: Found, train: str, test: str) -> dict[str, float]:
    """Bits per character by what people call it, compressors first."""
    result = found.cells.get((train, test), {})
    packed = {one["name"]: one["bits_per_character"] for one in result.get("compressors", ())}
    ours = {TITLES[row["name"]]: row.get("bits_per_character") for row in result.get("rows", ())}
    every = {**packed, **ours}
    return {k: float(v) for k, v in every.items() if v is not None and math.isfinite(v)}


def _entry(cell: dict[str, float], title: str) -> Entry:
    if title not in cell:
        return Entry()
    return Entry(f"{cell[title]:.3f}", best=cell[title] == min(cell.values()))
