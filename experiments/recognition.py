"""End to end: a novel read aloud by espeak-ng, recognized by pocketsphinx, rescored by us.

    python -m experiments.recognition --corpora DIR --model FOLDER

The model has read news of 2007, and meets a novel of 1847. Each list of 100 hypotheses is rescored
with KenLM and n-grams of the model's own training text, with the network, with all of the model
frozen, with the model reading each winner before the next sentence, and with it reading what was
said, as if somebody corrected each sentence. All of these have read a little news before. Nobody
else is shown a reference but on the first sentences, where weights are tuned.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiments.arpa import write_arpa
from experiments.markup import markdown
from experiments.results import write_result
from experiments.speech import NOISE, SPEED, VOICE, recognized
from unbounded.cli.main import CORES, Threads, run
from unbounded.console import say
from unbounded.corpus import SENTENCE_END, Reader
from unbounded.evaluation.tables import plain
from unbounded.integrations.kenlm_scorer import Scorer
from unbounded.integrations.nbest import (
    Features,
    Hypothesis,
    Rescorer,
    Utterance,
    errors_of,
    tuned,
)
from unbounded.lm import Pretrained, load_model

BOOK, LENGTHS = "books/ENG18471_Bronte.txt.xz", range(5, 15)
"""Wuthering Heights: sentences of 5 to 14 words, all of them on the recognizer's list."""

FIRST, FIRST_LINES = "news/2008.txt.xz", 200
"""What was read before the novel: news of the year after those that the network was trained on."""

NAMES = {
    "recognizer": "recognizer alone",
    "kenlm": "KenLM, 3-grams of the training text",
    "network": "network alone",
    "cold": "this model, frozen, without news before",
    "frozen": "this model, frozen",
    "learning": "this model, learning its winners",
    "corrected": "this model, learning what was said, once it is decided",
    "oracle": "best of the list (oracle)",
}


def measure(
    utterances: Sequence[Utterance],
    model: Pretrained,
    work: Path,
    dev: int,
    first: Sequence[str] = (),
) -> dict[str, Any]:
    """Errors by utterance of every system, the weights they were tuned to, and rare words heard."""
    errors = [errors_of(one, one.reference or "") for one in utterances]
    chosen: dict[str, list[int]] = {
        "recognizer": [int(np.argmax([h.score for h in u.hypotheses])) for u in utterances],
        "oracle": [int(wrong.argmin()) for wrong in errors],
    }
    weights: dict[str, list[float]] = {}

    def begun() -> Scorer:
        """One that has read a little of its own domain, and so knows whom of its experts to ask."""
        scorer = Scorer(model)
        scorer.read("\n".join(first))
        return scorer

    systems: dict[str, Callable[[], Callable[[Utterance], tuple[int, Features]]]] = {
        "kenlm": lambda: _kenlm(model, work),
        "network": lambda: Rescorer(Scorer(model, preset="static")).choose,
        "cold": lambda: Rescorer(Scorer(model)).choose,
        "frozen": lambda: Rescorer(begun()).choose,
        "learning": lambda: Rescorer(begun(), learn=True).choose,
        "corrected": lambda: _corrected(begun()),
    }
    for name, make in systems.items():
        choose, found = make(), []
        for number, utterance in enumerate(utterances):
            best, features = choose(utterance)
            found.append(features)
            if number + 1 == dev:
                tuning = tuned(found, errors[:dev])
                weights[name] = [tuning.acoustic, tuning.language, tuning.length]
                if isinstance(owner := getattr(choose, "__self__", None), Rescorer):
                    owner.weights = tuning
            if number >= dev:
                best = tuning.best(features)
            chosen.setdefault(name, []).append(best)
        say(f"{name}: {_wer(chosen[name], errors, utterances, dev):.2%}")
    test = range(dev, len(utterances))
    return {
        "utterances": len(test),
        "dev": dev,
        "words": sum(len((utterances[i].reference or "").split()) for i in test),
        "weights": weights,
        "wer": {name: _wer(picks, errors, utterances, dev) for name, picks in chosen.items()},
        "never_seen": _never_seen(chosen, utterances, model, dev),
        "errors": {
            name: [int(errors[i][picks[i]]) for i in test] for name, picks in chosen.items()
        },
        "lengths": [len((utterances[i].reference or "").split()) for i in test],
    }


def _corrected(scorer: Scorer) -> Callable[[Utterance], tuple[int, Features]]:
    """Rescoring for somebody who corrects each sentence, as in dictation, before the next."""
    rescorer = Rescorer(scorer)

    def choose(utterance: Utterance) -> tuple[int, Features]:
        chosen = rescorer.choose(utterance)
        scorer.read(utterance.reference or "")
        return chosen

    return choose


def _kenlm(model: Pretrained, work: Path) -> Callable[[Utterance], tuple[int, Features]]:
    """Rescoring with the real KenLM, over n-grams of what the network was trained on."""
    import kenlm

    path = work / f"{model.fingerprint}.arpa"
    if not path.exists():
        assert model.text is not None
        text = np.asarray(model.text)
        (end,) = model.vocabulary.lookup([SENTENCE_END]).tolist()
        cuts = np.flatnonzero(text == end)
        write_arpa(
            (model.vocabulary.decode(part[part != end]) for part in np.split(text, cuts)), path
        )
    ngrams = kenlm.Model(str(path))

    def choose(utterance: Utterance) -> tuple[int, Features]:
        rows = []
        for one in utterance.hypotheses:
            words = [part for word in one.text.split() for part in model.tokenizer.words(word)]
            rows.append((one.score, ngrams.score(" ".join(words)), len(one.text.split())))
        return 0, np.array(rows)

    return choose


def _wer(
    picks: Sequence[int], errors: Sequence[Any], utterances: Sequence[Utterance], dev: int
) -> float:
    words = sum(len((one.reference or "").split()) for one in utterances[dev:])
    return float(sum(errors[i][picks[i]] for i in range(dev, len(utterances))) / words)


def saved(found: dict[str, Any], one: str, other: str) -> tuple[float, float, float]:
    """How much WER the other system saves; before and after it the ends of 95 % of what 10,000
    draws of utterances give."""
    better = np.array(found["errors"][one]) - np.array(found["errors"][other])
    words = np.array(found["lengths"])
    draws = np.random.default_rng(1).integers(len(words), size=(10_000, len(words)))
    rates = better[draws].sum(axis=1) / words[draws].sum(axis=1)
    low, high = np.quantile(rates, [0.025, 0.975]).tolist()
    return low, float(better.sum() / words.sum()), high


def differences(found: dict[str, Any]) -> str:
    """Who saves how much against whom, as Markdown."""
    pairs = [("frozen", "learning"), ("frozen", "corrected"), ("learning", "corrected")]
    lines = []
    for one, other in [*pairs, ("kenlm", "corrected")]:
        low, middle, high = (100 * part for part in saved(found, one, other))
        lines.append((NAMES[one], (NAMES[other], f"{middle:+.1f}", f"{low:+.1f} to {high:+.1f}")))
    return markdown(plain("", ("from", "to", "points of WER saved", "95 % of draws"), lines))


def _never_seen(
    chosen: dict[str, list[int]], utterances: Sequence[Utterance], model: Pretrained, dev: int
) -> dict[str, Any]:
    """Of words in the references that the network never saw, how many each system heard."""

    def strange(text: str) -> Counter[str]:
        return Counter(
            word
            for word in text.split()
            if not all(part in model.vocabulary for part in model.tokenizer.words(word))
        )

    said = [strange(one.reference or "") for one in utterances]
    heard = {
        name: sum(
            (said[i] & Counter(utterances[i].hypotheses[picks[i]].text.split())).total()
            for i in range(dev, len(utterances))
        )
        for name, picks in chosen.items()
    }
    return {"said": sum(one.total() for one in said[dev:]), "heard": heard}


def table(found: dict[str, Any]) -> str:
    """The systems, best last but for the oracle, as Markdown."""
    said, heard = found["never_seen"]["said"], found["never_seen"]["heard"]
    head = "rescored with", "WER", "words never seen by the network, heard"
    lines = [
        (text, (f"{found['wer'][name]:.1%}", f"{heard[name]} of {said}"))
        for name, text in NAMES.items()
    ]
    return markdown(plain("", head, lines))


def draw(found: dict[str, Any], path: Path) -> None:
    """WER up to each utterance, by system."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    words = np.cumsum(found["lengths"])
    for name in list(NAMES)[:-1]:
        rate = 100 * np.cumsum(found["errors"][name]) / words
        axes.plot(np.arange(1, len(words) + 1)[20::5], rate[20::5], label=NAMES[name], lw=1.4)
    axes.set(xlabel="utterances", ylabel="WER so far, %")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main(
    model: Annotated[Path, typer.Option(metavar="FOLDER", help="A model trained on other text.")],
    corpora: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the texts.")],
    count: Annotated[int, typer.Option(min=2, help="Sentences.")] = 520,
    dev: Annotated[int, typer.Option(min=1, help="Of these, for tuning the weights.")] = 60,
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Where n-best lists are kept, and not made again.")
    ] = Path("runs/recognition"),
    beside: Annotated[str, typer.Option(help="What else ran on the machine.")] = "nothing",
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
    threads: Threads = CORES,
) -> None:
    """Speak, recognize, rescore, and write results, table and curve."""
    from unbounded.presets import set_threads

    set_threads(threads)
    lists = recognized(corpora / BOOK, work, count, LENGTHS)
    utterances = [
        Utterance(
            str(one["utt"]),
            tuple(Hypothesis(text, score) for text, score in one["best"]),
            one["reference"],
        )
        for one in lists
    ]
    trained = load_model(model)
    news = [line.text for line in islice(Reader([str(corpora / FIRST)]), FIRST_LINES)]
    found = measure(utterances, trained, work, dev, news)
    found |= {"first": FIRST, "first_lines": FIRST_LINES}
    found |= {"book": BOOK, "voice": VOICE, "speed": SPEED, "noise": NOISE, "beside": beside}
    found |= {
        "model": {k: trained.config[k] for k in ("network", "training") if k in trained.config}
    }
    found = write_result(root, "recognition", found)
    draw(found, root / "docs" / "images" / "recognition.svg")
    typer.echo(table(found))
    typer.echo(differences(found))


if __name__ == "__main__":
    run(main, "python -m experiments.recognition")
