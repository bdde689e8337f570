"""Table 1: how many different words a test text has, and how many of its words are OOV words."""

from dataclasses import asdict
from typing import Any

from experiments.cells import Cell
from experiments.corpora import SEED, Corpora
from unbounded.corpus import Reader, blocks, read_sentences
from unbounded.lm import Pretrained


def run_vocabulary(cell: Cell, model: Pretrained, corpora: Corpora) -> dict[str, Any]:
    """Count; nothing is predicted."""
    met = model.vocabulary.copy()
    own: set[str] = set()
    tokens = oov = 0
    text = Reader([corpora.text(cell.test, "test")])
    for block in blocks(read_sentences(text, model.tokenizer), 8192, cell.tokens):
        ids = met.encode(block.words)
        own.update(block.words)
        tokens += len(ids)
        oov += int((ids >= met.base_size).sum())
    return {
        "cell": asdict(cell),
        "seed": SEED,
        "tokens": tokens,
        "types": len(own),
        "vocabulary": len(met),
        "oov_rate": oov / max(tokens, 1),
    }
