"""What one would use instead of a memory, on the same words: bits per character, time, bytes."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, final

import numpy as np

from experiments.arpa import write_arpa
from experiments.cells import read_cell, stream, usual_lines
from experiments.compressors import installed, packed_after, written
from experiments.config import Cell
from experiments.corpora import Corpora, domain_order, spoken
from experiments.reading import Mixing
from experiments.results import Found, notes, read_results
from unbounded.corpus import SENTENCE_END
from unbounded.datastore import Auto
from unbounded.errors import SettingError, needing
from unbounded.evaluation.evaluate import TUNED_TOKENS
from unbounded.evaluation.tables import Entry, Grid, Line, Part
from unbounded.experts import Expert, Offline
from unbounded.experts.cache import PAPER_K
from unbounded.experts.distribution import Distribution
from unbounded.experts.offline import tuned
from unbounded.files import write_atomically
from unbounded.lm import Pretrained
from unbounded.model import OnlineModel
from unbounded.states import Arrays, from_array, to_array
from unbounded.types import Hidden, Ids, Probs

ORDER = 5

COMPARED = (
    "Nothing of the future is known: where the paper’s tables have a uniform over the words of "
    "training and test text, OOV words are here spelled by a character model that has read the "
    "network’s vocabulary. So these figures stand in no table with the paper’s. Everything starts "
    "from the same training text: networks are trained on it, the kNN-LM remembers it (its weight "
    "and temperature tuned on held-out text), n-grams are counted on it, and compressors pack it "
    "first, so that what counts is how much longer the test text makes the packed file. All are "
    "given the same words after tokenization, lower-cased; SmolLM2 alone reads the text as it was "
    "written, in pieces of words, and its training text is not ours. Bytes are what is held to go "
    "on from: weights and memory, or the memory of the compressor’s process. Times are of one "
    "thread."
)

TITLES = {
    "5-grams": f"{ORDER}-grams of the training text (KenLM)",
    "static": "LSTM alone",
    "knnlm": "LSTM, kNN-LM of the training text, tuned",
    "dynamic": "LSTM, dynamic evaluation",
    "unbounded": "LSTM + unbounded cache",
    "full": "all together",
}
FITTED = ("5-grams", "knnlm")
"""Whose weights are tuned beforehand, and stay."""


def instead_lines() -> dict[str, Mixing]:
    """Ours and other models of words, each with the spelling of OOV words."""
    return {
        "5-grams": Mixing(("5-grams", "spelling")),
        "knnlm": Mixing(("static", "spelling", "knnlm")),
        "dynamic": Mixing(("dynamic", "spelling")),
        **usual_lines(["static", "unbounded", "full"], "open"),
    }


def read_instead(cell: Cell, model: Pretrained, corpora: Corpora, kept: Path) -> dict[str, Any]:
    """Read the test text under every model, and let every compressor pack it."""
    if model.text is None:
        raise SettingError("this model keeps no training text; train it again")
    test = [word for words in stream(corpora.text(cell.test, "test"), model, cell.tokens)
            for word in words]  # fmt: skip
    trained = model.vocabulary.decode(model.text)
    packed = [packed_after(name, written(trained), written(test)) for name in installed()]
    (end,) = model.vocabulary.lookup([SENTENCE_END]).tolist()
    arpa = kept.with_name(f"{model.fingerprint}-{ORDER}-grams.arpa")
    if not arpa.exists():
        arpa.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(arpa) as aside:
            write_arpa(_sentences(_numbered(model.text, end)), aside, ORDER)
    valid = corpora.text(cell.train, "valid")

    @cache
    def knnlm() -> Offline:
        words = [word for block in stream(valid, model, TUNED_TOKENS) for word in block]
        return tuned_knnlm(model, model.vocabulary.lookup(words))

    further: dict[str, Callable[[OnlineModel], Expert]] = {
        "5-grams": lambda online: FiveGrams(arpa, end),
        "knnlm": lambda online: knnlm(),
    }
    lines = instead_lines()
    result = read_cell(cell, model, corpora, kept, lines, further, protocol="open")
    held = {**result["bytes"], "5-grams": arpa.stat().st_size}
    assert model.folder is not None
    network = (model.folder / "weights.safetensors").stat().st_size
    for row in result["rows"]:
        row["bytes"] = sum(held[name] for name in lines[row["name"]].experts)
        row["bytes"] += network * (row["name"] not in ("5-grams", "dynamic"))
    return {**result, "compressors": packed}


def tuned_knnlm(model: Pretrained, valid: Ids) -> Offline:
    """A kNN-LM whose memory is the training text, closed; its temperature suits a text best."""
    assert model.text is not None
    knnlm = Offline(Auto(model.lm.width), model.lm.base_size, k=PAPER_K)
    before, state = model.lm.start()
    for start in range(0, len(model.text), 8192):
        words = model.text[start : start + 8192]
        after, state = model.lm.advance(state, words)
        knnlm.cache.datastore.add(np.concatenate([before, after[:-1]]), words)
        before = after[-1:]
    # OOV words have no id here, and no neighbor has them.
    hidden, state = model.lm.start()
    after, _ = model.lm.advance(state, np.where(valid < 0, model.lm.base_size, valid))
    states = np.concatenate([hidden, after[:-1]])
    known = valid >= 0
    static = model.lm.prob(states[known], valid[known])
    temperature, _, _ = tuned(knnlm, states[known], valid[known], static)
    knnlm.close(temperature)
    return knnlm


@final
class FiveGrams(Expert):
    """KenLM over an ARPA file: what it counted is all it knows. It is scored, and not asked.

    Words are written there as their numbers, whatever signs they are made of.
    """

    def __init__(self, path: Path, end: int) -> None:
        with needing("kenlm, which reads n-grams,", "recognition"):
            import kenlm
        config = kenlm.Config()
        config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
        self._kenlm, self._model, self._end = kenlm, kenlm.Model(str(path), config), end
        self._context: list[str] = []

    def predict(self, hidden: Hidden) -> Distribution:
        """Not asked for here."""
        raise NotImplementedError

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """Each word's probability after those before it in its sentence; none for OOV words."""
        probs, state, after = np.zeros(len(words)), self._kenlm.State(), self._kenlm.State()
        self._model.BeginSentenceWrite(state)
        for word in self._context:
            self._model.BaseScore(state, word, after)
            state, after = after, state
        numbered = _numbered(words, self._end)
        for place, word in enumerate(numbered):
            found = self._model.BaseFullScore(state, word, after)
            probs[place] = 0.0 if found.oov else 10**found.log_prob
            state, after = after, state
            if word == SENTENCE_END:
                self._model.BeginSentenceWrite(state)
        self._context = _unfinished([*self._context, *numbered])
        return probs

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The sentence that has not ended."""
        return {"context": to_array(self._context)}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the last part."""
        self._context = from_array(parts[-1]["context"])


def _numbered(ids: Ids, end: int) -> list[str]:
    return [SENTENCE_END if number == end else str(number) for number in ids.tolist()]


def _sentences(words: Sequence[str]) -> list[list[str]]:
    groups = groupby(words, lambda word: word == SENTENCE_END)
    return [list(group) for ends, group in groups if not ends]


def _unfinished(words: list[str]) -> list[str]:
    """The words after the last sentence end."""
    ends = [place for place, word in enumerate(words) if word == SENTENCE_END]
    return words[ends[-1] + 1 :] if ends else words


def instead_grid(found: Found, transformers: Path) -> Grid:
    """One line a model or compressor, one column a test text, and what it costs."""
    lines: dict[str, dict[str, dict[str, float]]] = {}
    tests = sorted({test for _, test in found.cells}, key=domain_order)
    for (_, test), result in found.cells.items():
        for one in result.get("compressors", ()):
            seconds = one["seconds"] / result["tokens"]
            figures = {"seconds": seconds, "bytes": one.get("memory", 0)}
            figures |= {"bits": one["bits_per_character"], "words": result["tokens"]}
            lines.setdefault(one["name"], {})[test] = figures
    for (_, test), result in found.cells.items():
        rows = {row["name"]: row for row in result.get("rows", ())}
        for name, title in TITLES.items():
            if name in rows:
                row = rows[name]
                fitted = "fixed_" if name in FITTED else ""
                figures = {
                    "bits": row[f"{fitted}bits_per_character"],
                    "seconds": row["seconds_per_token"],
                    "bytes": row.get("bytes", 0),
                    "words": result["tokens"],
                }
                lines.setdefault(title, {})[test] = figures
    for cell in read_results(transformers):
        _add_transformer(lines, cell, tests)
    shown = tuple(_line(title, cells, tests) for title, cells in lines.items())
    return Grid(
        "What would you use instead? Bits per character of the test text, given the training text",
        ("", *map(spoken, tests), "µs a word", "bytes", "words"),
        (Part("", shown),),
        notes(found),
    )


def _add_transformer(
    lines: dict[str, dict[str, dict[str, float]]], cell: dict[str, Any], tests: Sequence[str]
) -> None:
    """SmolLM2 alone and with everything, where it has read one of these texts."""
    asked, result = cell["cell"], cell["result"]
    if asked["domain"] not in tests or asked["model"] != "smollm2":
        return
    titles = {"static": "SmolLM2-135M alone", "full": "SmolLM2-135M, all together"}
    for row in result["rows"]:
        if row["name"] in titles:
            figures = {
                "bits": row["bits_per_character"],
                "seconds": row["seconds"] / result["words"],
                "words": result["words"],
            }
            lines.setdefault(titles[row["name"]], {})[asked["domain"]] = figures


def _line(title: str, cells: dict[str, dict[str, float]], tests: Sequence[str]) -> Line:
    bits = (f"{cells[test]['bits']:.3f}" if test in cells else "–" for test in tests)
    figures = list(cells.values())
    microseconds = sum(1e6 * one["seconds"] for one in figures) / len(figures)
    most = max(one.get("bytes", 0) for one in figures)
    held = f"{most / 1e6:,.0f} MB" if most else "–"
    words = f"{max(one['words'] for one in figures):,.0f}"
    return Line(
        title, (*map(Entry, bits), Entry(f"{microseconds:,.0f}"), Entry(held), Entry(words))
    )
