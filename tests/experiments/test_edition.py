"""Perplexities do not change unless they are meant to, and then results know of which edition."""

from pathlib import Path

import numpy as np
import pytest

from experiments.cells import usual_lines
from experiments.reading import Lines
from experiments.results import EDITION
from unbounded.lm import load_model
from unbounded.mixture import Fixed
from unbounded.presets import build_online

FINGERPRINTS = {
    3: {
        "static": 2525.57,
        "unigram": 609.536,
        "local": 273.053,
        "unbounded": 258.442,
        "full": 152.288,
    },
}
"""Perplexities of 20,000 words under the model of the package, by edition."""


def test_what_is_measured_is_of_this_edition() -> None:
    """More words than are kept exactly, so that the codes of the memory are there too."""
    model = load_model(Path("default"))
    assert model.text is not None
    # Backwards, or its n-grams would know them by heart.
    words = model.vocabulary.decode(model.text[20_000::-1])
    lines = usual_lines(list(FINGERPRINTS[EDITION]), "open")
    experts = list(dict.fromkeys(name for line in lines.values() for name in line.experts))
    even = Fixed(np.full(len(experts), 1 / len(experts)))
    online = build_online(model, None, experts, mixture=even)
    run = Lines(online, lines, model.tokenizer.characters, 10_000)
    for start in range(0, len(words), 8192):
        run.read(words[start : start + 8192])
    found = {row["name"]: round(row["perplexity"], 3) for row in run.to_json()["rows"]}
    assert found == pytest.approx(FINGERPRINTS[EDITION], rel=2e-4), (
        f"perplexities have changed, to {found}; if they are meant to, raise EDITION in "
        "experiments/results.py, say there what is new, and write these down here"
    )
