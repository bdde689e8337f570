"""Sentences spoken by espeak-ng, recognized by pocketsphinx, and what else it heard: n-best lists.

Nothing is downloaded: espeak-ng is a Debian package, and pocketsphinx brings its English model.
"""

import json
import lzma
import math
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.errors import SettingError, needing

VOICE, SPEED, GAP, NOISE = "en-us+klatt2", 150, 3, 60.0
"""Of nine voices, tried by hand on five sentences of no book, the one that pocketsphinx understood
best. White noise is added because digital silence is unlike anything it was trained on."""

RATE, SPOKEN = 16_000, 22_050
"""Samples a second that pocketsphinx wants, and that espeak-ng gives."""

BEST, BEAM, POSTERIOR = 100, 30, 1e-5
"""Hypotheses of a sentence, partial ones kept at a node, and the least likely link looked at."""

LANGUAGE, INSERTION = 6.5, math.log(0.65)
"""pocketsphinx's own weight of its language model, and what a word costs."""


def sentences(book: Path, known: set[str], count: int, words: range) -> list[str]:
    """The first sentences of a book whose length fits and whose words the recognizer has all."""
    found: list[str] = []
    with lzma.open(book, "rt", encoding="utf-8") as file:
        text = re.sub(r"\s+", " ", file.read().replace("’", "'").lower())
    for sentence in re.split(r"[.!?;:—\"“”()]+|--+", text):
        spoken = re.sub(r"[^a-z' ]", " ", sentence).split()
        spoken = [word.strip("'") or "'" for word in spoken]
        if len(spoken) in words and all(word in known for word in spoken):
            found.append(" ".join(spoken))
            if len(found) == count:
                return found
    raise SettingError(f"{book} has {len(found)} such sentences; ask for fewer than {count}")


@final
class Recognizer:
    """pocketsphinx with its English model, as it comes."""

    def __init__(self) -> None:
        with needing("pocketsphinx", "recognition"):
            import pocketsphinx
        path = pocketsphinx.get_model_path
        self._decoder = pocketsphinx.Decoder(
            hmm=path("en-us/en-us"),
            lm=path("en-us/en-us.lm.bin"),
            dict=path("en-us/cmudict-en-us.dict"),
            loglevel="FATAL",
        )
        self._lm = pocketsphinx.NGramModel(
            pocketsphinx.Config(), pocketsphinx.LogMath(), path("en-us/en-us.lm.bin")
        )
        self._log = math.log(1.0001)
        listed = Path(path("en-us/cmudict-en-us.dict")).read_text(encoding="utf-8").splitlines()
        unknown = self._lm.prob(["qqqzzz"])
        words = {line.split()[0] for line in listed if line and "(" not in line.split()[0]}
        self.words = {word for word in words if self._lm.prob([word]) != unknown}
        """What it can recognize: words with a pronunciation that its language model has too."""

    def recognize(self, samples: np.ndarray) -> tuple[str, list[tuple[str, float]]]:
        """The recognizer's own answer, and hypotheses with their scores, the best first."""
        decoder = self._decoder
        decoder.start_utt()
        decoder.process_raw(samples.tobytes(), full_utt=True)
        decoder.end_utt()
        heard = decoder.hyp()
        answer = heard.hypstr if heard else ""
        with tempfile.NamedTemporaryFile(suffix=".htk") as file:
            lattice = decoder.get_lattice()
            if lattice is None:
                return answer, [(answer, 0.0)]
            lattice.write_htk(file.name)
            lines = Path(file.name).read_text(encoding="utf-8").splitlines()
        return answer, self._best(lines)

    def _language(self, history: tuple[str, ...], word: str) -> float:
        # The library wants the newest word first.
        return float(self._lm.prob([word, *history[-1:-3:-1]])) * self._log

    def _best(self, lines: list[str]) -> list[tuple[str, float]]:
        """The `BEST` distinct word sequences through a lattice: acoustic and language scores."""
        nodes, links, first, last = _lattice(lines)
        partial: dict[int, dict[tuple[str, ...], float]] = {first: {(): 0.0}}
        for node in _in_order(links, first):
            kept = sorted(partial.get(node, {}).items(), key=lambda item: -item[1])
            wide = BEST if node == last else BEAM
            partial[node] = dict(kept[:wide])
            for target, acoustic in links.get(node, ()):
                word = nodes[target]
                there = partial.setdefault(target, {})
                for said, score in partial[node].items():
                    total = score + acoustic
                    longer = said
                    if word:
                        longer = (*said, word)
                        before = ("<s>", *said)
                        total += LANGUAGE * self._language(before, word) + INSERTION
                    if total > there.get(longer, -np.inf):
                        there[longer] = total
        ended = [
            (" ".join(said), score + LANGUAGE * self._language(("<s>", *said), "</s>"))
            for said, score in partial.get(last, {}).items()
        ]
        return sorted(ended, key=lambda item: -item[1])


def _lattice(
    lines: list[str],
) -> tuple[dict[int, str], dict[int, list[tuple[int, float]]], int, int]:
    """Words of the nodes, links by node, first and last node of a lattice in HTK's format."""
    nodes: dict[int, str] = {}
    links: dict[int, list[tuple[int, float]]] = {}
    ends = {"start": 0, "end": 0}
    likeliest: dict[int, tuple[float, int, float]] = {}
    for line in lines:
        fields = dict(part.split("=", 1) for part in line.split("\t") if "=" in part)
        if "I" in fields:
            word = fields["W"]
            nodes[int(fields["I"])] = "" if word.startswith("!") else re.sub(r"\(\d+\)$", "", word)
        elif "J" in fields:
            start, end, p = int(fields["S"]), int(fields["E"]), float(fields["p"])
            link = (end, float(fields["a"]))
            if p >= POSTERIOR:
                links.setdefault(start, []).append(link)
            if p > likeliest.get(start, (-1.0, 0, 0.0))[0]:
                likeliest[start] = (p, *link)
        elif line.startswith(("start=", "end=")):
            name, value = line.split("=")
            ends[name] = int(value)
    # No node that was reached is a dead end.
    for node, (_, end, acoustic) in likeliest.items():
        links.setdefault(node, [(end, acoustic)])
    return nodes, links, ends["start"], ends["end"]


def _in_order(links: dict[int, list[tuple[int, float]]], first: int) -> Iterator[int]:
    """The nodes that can be reached, each after all that lead to it."""
    seen: set[int] = set()
    order: list[int] = []
    stack = [(first, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(target, False) for target, _ in links.get(node, ()) if target not in seen]
    return reversed(order)


def spoken(sentence: str, seed: int) -> np.ndarray:
    """A sentence as samples: espeak-ng's voice, a little silence around it, noise."""
    command = ["espeak-ng", "-v", VOICE, "-s", str(SPEED), "-g", str(GAP), "--stdout", sentence]
    try:
        said = subprocess.run(command, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise SettingError("espeak-ng is not installed; apt-get install espeak-ng") from None
    data = said[said.find(b"data") + 8 :]
    wave = np.frombuffer(data[: len(data) // 2 * 2], np.int16).astype(np.float64)
    size = len(wave) * RATE // SPOKEN
    # Resampled by cutting the spectrum, which leaves no aliases.
    lower = np.fft.irfft(np.fft.rfft(wave)[: size // 2 + 1], size) * size / len(wave)
    padded = 0.7 * np.pad(lower, RATE // 5)
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=len(padded))
    return (padded + noise).clip(-32768, 32767).astype(np.int16)


def recognized(book: Path, work: Path, count: int, words: range) -> list[dict[str, Any]]:
    """N-best lists of so many sentences of a book; what is in the working folder is not redone."""
    recognizer = Recognizer()
    path = work / f"{book.name.split('.')[0]}-{count}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = []
    if path.exists():
        done = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open("a", encoding="utf-8") as file:
        for number, sentence in enumerate(sentences(book, recognizer.words, count, words)):
            if number < len(done):
                continue
            answer, best = recognizer.recognize(spoken(sentence, number))
            done.append({"utt": number, "reference": sentence, "answer": answer, "best": best})
            file.write(json.dumps(done[-1]) + "\n")
            file.flush()
    return done
