"""N-best lists of a recognizer: scored with shared prefixes, chosen from, and learned from."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, final

import numpy as np

from unbounded.corpus import SENTENCE_END
from unbounded.errors import SettingError
from unbounded.experts import NGram
from unbounded.integrations.kenlm_scorer import Scorer
from unbounded.model import OnlineModel
from unbounded.shapes import Float
from unbounded.types import Hidden, Ids, Probs

ROWS = 1024
"""Nodes that are asked for at once: what the softmax says of more would take much room."""


def tree_probs(online: OnlineModel, paths: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What `online.peek` gives each path's words; beginnings that paths share are asked once."""
    hidden, ids, nodes = _tree(online, paths)
    table = np.empty((len(ids), len(online.experts)))
    for start in range(0, len(table), ROWS):
        some = slice(start, start + ROWS)
        for column, expert in enumerate(online.experts.values()):
            # To these alone the words tell where the text stands.
            if not isinstance(expert, NGram):
                table[some, column] = expert.predict(hidden[some]).prob(ids[some])
    for column, expert in enumerate(online.experts.values()):
        if isinstance(expert, NGram):
            for path, at in zip(paths, nodes, strict=True):
                table[at, column] = expert.peek(path)[0]
    return [online.mixture.fork().score(table[at], hidden[at]).prob for at in nodes]


def _tree(online: OnlineModel, paths: Sequence[np.ndarray]) -> tuple[Hidden, Ids, list[np.ndarray]]:
    """A node for each different beginning: the hidden state before its last word, and that word.

    And of each path its nodes. All words of one depth are a step of as many streams, side by side.
    """
    lengths = np.fromiter(map(len, paths), np.int64, len(paths))
    inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
    words, nodes = np.zeros((2, *inside.shape), np.int64)
    none = np.empty(0, np.int64)
    words[inside] = np.concatenate([none, *paths])
    size, found = int(words.max(initial=0)) + 1, [(online.hidden[:0], none)]
    hidden, state = online.hidden, online.network_state
    # The paths that go on, and the stream that each of them follows.
    here = np.flatnonzero(lengths)
    stream, count = np.zeros(len(here), np.int64), 0
    for depth in range(inside.shape[1]):
        keys, place = np.unique(stream * size + words[here, depth], return_inverse=True)
        before, ids = np.divmod(keys, size)
        found.append((hidden[before], ids))
        nodes[here, depth] = count + place
        count += len(keys)
        on = lengths[here] > depth + 1
        onward, stream = np.unique(place[on], return_inverse=True)
        here, before = here[on], before[onward]
        if len(here):
            hidden, state = online.lm.advance(tuple(part[:, before] for part in state), ids[onward])
    rows = [row[:length] for row, length in zip(nodes, lengths.tolist(), strict=True)]
    states, last = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return states, last, rows


Features = Float[np.ndarray, "n 3"]
"""A row a hypothesis: the recognizer's score, the log10 probability of the text, its words."""


@dataclass(frozen=True)
class Hypothesis:
    """What may have been said; `fields` is the line it came from, for passing on."""

    text: str
    score: float
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Utterance:
    """What a recognizer offers for one stretch of speech, and what was said, if that is known."""

    name: str
    hypotheses: tuple[Hypothesis, ...]
    reference: str | None = None


@dataclass(frozen=True)
class Weights:
    """What counts how much: the recognizer's score, the language model's log10, each word."""

    acoustic: float = 1.0
    language: float = 5.0
    length: float = 0.0

    @staticmethod
    def parse(text: str) -> "Weights":
        """Three numbers with commas between them."""
        try:
            acoustic, language, length = (float(part) for part in text.split(","))
        except ValueError:
            raise SettingError(
                f"weights {text!r}; three numbers are needed, acoustic,language,length: 1,5,0"
            ) from None
        if not all(map(math.isfinite, (acoustic, language, length))):
            raise SettingError(f"weights {text!r}; they must be finite")
        return Weights(acoustic, language, length)

    def best(self, features: Features) -> int:
        """The hypothesis with the highest sum; of two as high the first."""
        return int((features @ np.array([self.acoustic, self.language, self.length])).argmax())


@final
class Rescorer:
    """Chooses the best hypothesis of each utterance; reads the winner on, if it is to learn."""

    def __init__(self, scorer: Scorer, weights: Weights = Weights(), *, learn: bool = False):
        self.weights = weights
        self._scorer = scorer
        self._learn = learn

    def features(self, utterance: Utterance) -> Features:
        """What there is to weigh; teaches nothing."""
        texts = [hypothesis.text for hypothesis in utterance.hypotheses]
        scores = [hypothesis.score for hypothesis in utterance.hypotheses]
        lengths = [len(text.split()) for text in texts]
        return np.array([scores, log10_probs(self._scorer, texts), lengths]).T

    def choose(self, utterance: Utterance) -> tuple[int, Features]:
        """The winner's place; it is learned before the next utterance, if so wanted."""
        features = self.features(utterance)
        best = self.weights.best(features)
        if self._learn and (text := utterance.hypotheses[best].text).strip():
            self._scorer.read(text)
        return best, features


def log10_probs(scorer: Scorer, texts: Sequence[str]) -> Probs:
    """`scorer.score` of each text; each word is asked for once behind each different beginning."""
    words = {
        text: tuple(part for word in text.split() for part in scorer.split(word)) for text in texts
    }
    for parts in words.values():
        scorer.known(parts)
    online = scorer.online
    paths = {p: online.vocabulary.lookup([*p, SENTENCE_END]) for p in set(words.values())}
    # Words that a memory never met have no number: texts with them go one by one.
    nameless = {p for p, ids in paths.items() if ids.min() < 0}
    found = {p: online.peek([*p, SENTENCE_END])[0].prob for p in nameless}
    shared = [p for p in paths if p not in nameless]
    probs = tree_probs(online, [paths[p] for p in shared])
    found |= dict(zip(shared, probs, strict=True))
    return np.array([np.log10(found[words[text]]).sum() for text in texts])


# Weights.


def word_errors(reference: str, text: str) -> int:
    """Words to put in, leave out or change: the edit distance, as WER counts it.

    >>> word_errors("the cat sat", "a cat sat down")
    2
    """
    said, heard = reference.split(), text.split()
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (word != other))
    return row[-1]


def errors_of(utterance: Utterance, reference: str) -> Ids:
    """Each hypothesis' errors, against what was said."""
    return np.array([word_errors(reference, h.text) for h in utterance.hypotheses])


GRID = (0.0, *(2.0 ** np.arange(-2, 7, 0.5)))
"""Weights of the language model that are tried, beside an acoustic weight of one."""

LENGTHS = np.arange(-60.0, 61.0, 3.0)
"""What a word may be worth."""


def tuned(features: Sequence[np.ndarray], errors: Sequence[np.ndarray]) -> Weights:
    """The weights with the fewest errors on a dev part; of many as good, the middle ones."""
    tried = np.array([(1.0, language, length) for language in GRID for length in LENGTHS])
    totals = np.zeros(len(tried), np.int64)
    for rows, wrong in zip(features, errors, strict=True):
        totals += wrong[(rows @ tried.T).argmax(axis=0)]
    best = tried[totals == totals.min()]
    middle = best[np.abs(best - np.median(best, axis=0)).sum(axis=1).argmin()]
    return Weights(*middle.tolist())


@final
class OnlineWeights:
    """Weights that learn from each reference that comes, after its utterance was decided.

    A softmax over the hypotheses, and Adagrad on the errors that it expects (Prabhavalkar and
    others, 2018: minimum word error rate); the acoustic weight stays one.
    """

    def __init__(self, start: Weights = Weights(), rate: float = 0.5) -> None:
        self._weights = np.array([start.acoustic, start.language, start.length])
        self._squares = np.full(3, 1e-6)
        self._rate = rate

    @property
    def weights(self) -> Weights:
        """As they are now."""
        return Weights(*self._weights.tolist())

    def learn(self, features: Features, errors: Ids) -> None:
        """Expect fewer errors of this utterance the next time."""
        # Scores of recognizers differ by hundreds: a softmax of them would see one hypothesis.
        spread = max(float(np.std(features @ self._weights)), 1e-9)
        scores = features @ self._weights / spread
        chance = np.exp(scores - scores.max())
        chance /= chance.sum()
        apart = errors - chance @ errors
        gradient = (chance * apart) @ features / spread
        gradient[0] = 0.0
        self._squares += gradient**2
        self._weights -= self._rate * gradient / np.sqrt(self._squares)


# Files.


def json_lines(lines: Iterable[str], say: Callable[[str], None]) -> Iterator[Utterance]:
    """Utterances out of JSON lines with `utt`, `text` and `score`; one that is wrong is said so.

    Hypotheses of an utterance stand together. Other fields are passed on; `reference` is one.
    """

    def parsed(line: str) -> tuple[str, Hypothesis]:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError("this is not JSON") from None
        if not isinstance(fields, dict) or not {"utt", "text", "score"} <= fields.keys():
            raise ValueError("an object with utt, text and score is needed")
        text, score = fields["text"], fields["score"]
        if not isinstance(text, str):
            raise ValueError("text must be a string")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ValueError(f"score is {score!r}; a number is needed")
        return str(fields["utt"]), Hypothesis(text, _finite(score), fields)

    return _grouped(lines, parsed, say)


def kaldi_text(
    lines: Iterable[str], costs: Mapping[str, float], say: Callable[[str], None]
) -> Iterator[Utterance]:
    """Utterances out of Kaldi's n-best text, `UTT-N word word …`; costs by `UTT-N` are negated."""

    def parsed(line: str) -> tuple[str, Hypothesis]:
        key, _, text = line.strip().partition(" ")
        name, dash, number = key.rpartition("-")
        if not (dash and name and number.isdigit()):
            raise ValueError(f"{key!r} is no UTT-N")
        if costs and key not in costs:
            raise ValueError(f"{key!r} has no cost")
        fields = {"utt": name, "text": text, "key": key}
        return name, Hypothesis(text, -costs.get(key, 0.0), fields)

    return _grouped(lines, parsed, say)


def kaldi_table(lines: Iterable[str]) -> dict[str, str]:
    """`KEY rest of the line`, as Kaldi writes texts and costs."""
    pairs = (line.strip().partition(" ") for line in lines if line.strip())
    return {key: rest.strip() for key, _, rest in pairs}


def kaldi_costs(lines: Iterable[str], say: Callable[[str], None]) -> dict[str, float]:
    """Costs by key; several for one key, such as of graph and acoustics, are added up."""
    found: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        key, *values = line.split() or [""]
        try:
            if key:
                found[key] = found.get(key, 0.0) + sum(_finite(float(value)) for value in values)
        except ValueError as error:
            say(f"costs, line {number}: {error}; it is left out")
    return found


def _finite(score: float) -> float:
    if not math.isfinite(score):
        raise ValueError(f"the score is {score}; a finite number is needed")
    return float(score)


def _grouped(
    lines: Iterable[str],
    parsed: Callable[[str], tuple[str, Hypothesis]],
    say: Callable[[str], None],
) -> Iterator[Utterance]:
    def found() -> Iterator[tuple[str, Hypothesis]]:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield parsed(line)
            except ValueError as error:
                say(f"line {number}: {error}; this hypothesis is left out")

    for name, same in groupby(found(), key=itemgetter(0)):
        kept = tuple(hypothesis for _, hypothesis in same)
        said = next((h.fields["reference"] for h in kept if "reference" in h.fields), None)
        yield Utterance(name, kept, said if isinstance(said, str) else None)
