"""`unbounded serve`, `keys`, `rescore` and `audit`: for people and programs elsewhere."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import CORES, Device, JsonFile, Seed, Texts, Threads, Verbs, app, say_damage
from unbounded.console import say, tell, write_json
from unbounded.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from unbounded.integrations.nbest import Utterance


def _checked_root(root: Path) -> Path:
    from unbounded.store.layout import NAME

    if (root / NAME).exists():
        raise SettingError(f"{root} is a memory itself; give the folder that it is in")
    return root


Root = Annotated[
    Path,
    typer.Argument(
        metavar="MEMORY_ROOT",
        file_okay=False,
        callback=_checked_root,
        help="Folder whose folders are the memories.",
    ),
]


@app.command()
def serve(
    root: Root,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Folder of the model [default: that of the memories there, or the small default].",
        ),
    ] = None,
    device: Device = "cpu",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    without_keys: Annotated[
        bool,
        typer.Option("--without-keys", help="Let everybody in who can reach it, keys or none."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which requests without a key may call it, beside its addresses, "
            "localhost and this machine's; may be repeated.",
        ),
    ] = None,
    max_memories: Annotated[int, typer.Option(min=1, help="Memories at most.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of a request at most.")] = 32,
    seconds: Annotated[float, typer.Option(min=0.1, help="What asking may take.")] = 60.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds to end in, when stopped.")] = 20.0,
    threads: Annotated[
        int, typer.Option(min=1, show_default="all cores", help="Threads that read and ask.")
    ] = CORES,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line a request.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where the keys of new memories lie, and of those there that have shards: "
            "ray://HOST:PORT; ?shards=N behind it for new ones.",
        ),
    ] = None,
) -> None:
    """Serve memories over HTTP, with a page; a line of JSON a request on standard error."""
    from unbounded.cluster import Address
    from unbounded.lm import TransformerConfig, load_model
    from unbounded.lm.model_folder import DEFAULT
    from unbounded.serve.app import chosen_keys, create_app, recorded_model
    from unbounded.serve.app import serve as run
    from unbounded.serve.limits import Limits
    from unbounded.serve.observing import Observer

    if engine is not None:
        Address.parse(engine)
    # Before the model is loaded: a refusal need not wait for that.
    keys = chosen_keys(root, host, without_keys=without_keys)
    limits = Limits(body=max_body << 20, memories=max_memories, seconds=seconds, grace=grace)
    found = model or recorded_model(root) or DEFAULT
    service = create_app(
        root,
        load_model(found, TransformerConfig(device=device)),
        keys=keys,
        limits=limits,
        observer=Observer(quiet=quiet),
        threads=threads,
        hosts=[host, *(allow_host or ())],
        engine=engine,
    )
    run(service, host, port, say)


group = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="Who may use a service: make and remove keys."
)
app.add_typer(group, name="keys")


@group.command()
def add(
    root: Root,
    label: Annotated[str, typer.Option(help="Whose it is, for the list.")] = "",
    memory: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A memory it is for; may be repeated [default: all]."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="It may make, read into, forget and delete too.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Make a key; its token is printed now and never again."""
    from unbounded.serve.keys import Keys

    key, token = Keys(root).add(label, memory or [], "write" if write else "read")
    if json_file != "-":
        say(f"key {key.id} may {key.right} {', '.join(key.memories)}; keep the token, it is:")
    tell(json_file, {"id": key.id, "token": token, "right": key.right}, token)


@group.command("list")
def list_keys(root: Root, json_file: JsonFile = None) -> None:
    """Say which keys there are; their tokens are not kept."""
    from unbounded.serve.keys import Keys

    there = Keys(root)
    keys = there.all()
    lines = [
        f"{key.id}  {key.right:5}  {key.created}  {', '.join(key.memories)}  {key.label}".rstrip()
        for key in keys
    ]
    if not keys:
        say(f"{root} has no keys" + (f" left: {there.to_open()}" if there.on else ""))
    shown = ("id", "label", "memories", "right", "created")
    told = [{name: getattr(key, name) for name in shown} for key in keys]
    tell(json_file, {"keys": told, "on": there.on}, *lines)


@group.command()
def remove(root: Root, id: Annotated[str, typer.Argument(metavar="ID", help="As listed.")]) -> None:
    """Remove a key; a service that runs knows at once."""
    from unbounded.serve.keys import Keys

    keys = Keys(root)
    key = keys.remove(id)
    say(f"key {key.id} opens nothing any more")
    if not keys.all():
        say(f"it was the last: {keys.to_open()}")


BROKEN = 3
"""The exit status of a breach, apart from 1 and 2, which are for what could not be audited."""


@app.command()
def audit(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A model's folder, module:callable, lm_eval:MODEL,key=value, or an "
            "OpenAI-compatible address such as http://localhost:8000/v1.",
        ),
    ],
    texts: Texts,
    words: Annotated[int, typer.Option(min=16, help="Words of the text to audit on.")] = 300,
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Words to sum over, one a line [default: the text's]."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=2, help="Words asked for a sum at most; of more, a sample.")
    ] = 300,
    preset: Annotated[str, typer.Option(help="For a model's folder: which experts.")] = "full",
    model: Annotated[str, typer.Option(help="For an address: the model's name there.")] = "default",
    tolerance: Annotated[float, typer.Option(min=0.0, help="Nats that rounding may take.")] = 1e-3,
    seed: Seed = 1,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Check if an online language model's scores are what they claim; exit status 3 if not.

    A key for an address is taken from OPENAI_API_KEY.
    """
    from unbounded.corpus import Reader, read_sentences
    from unbounded.integrations.audit import Audit
    from unbounded.integrations.audited import audited
    from unbounded.presets import set_threads

    set_threads(threads)
    key = os.environ.get("OPENAI_API_KEY")
    reader = Reader(texts)
    made, ours, strings = audited(what, preset=preset, model=model, key=key)
    if ours is not None:
        read = (word for one in read_sentences(reader, ours.tokenizer) for word in one.words)
    else:
        read = (word for line in reader for word in line.text.split())
    text = list(islice(read, words))
    say_damage(reader)
    listed = None if vocabulary is None else vocabulary.read_text(encoding="utf-8").split()
    checks = Audit(
        *(made, text, listed), samples=samples, seed=seed, tolerance=tolerance, disjoint=strings
    )
    findings = []
    for found in checks.run():
        findings.append(found)
        if json_file != "-":
            verdict = {True: "kept", False: "BROKEN", None: "cannot tell"}[found.kept]
            typer.echo(f"{found.check:13} {verdict:12} {found.evidence}")
    broken = [found.check for found in findings if found.kept is False]
    if json_file != "-":
        typer.echo(f"broken: {', '.join(broken)}" if broken else "nothing broken was found")
    if json_file is not None:
        write_json(
            {"broken": broken, "words": len(text), "findings": [asdict(f) for f in findings]},
            json_file,
        )
    if broken:
        raise typer.Exit(BROKEN)


@app.command()
def rescore(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a model, or of a memory.")
    ],
    nbest: Annotated[
        str,
        typer.Argument(
            metavar="NBEST",
            help="JSON lines with utt, text and score, or Kaldi's n-best text; - is standard "
            "input.",
        ),
    ],
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Costs of Kaldi's hypotheses, by UTT-N.")
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What was said, by UTT: counts errors, never read."),
    ] = None,
    weights: Annotated[
        str, typer.Option(help="Of the score, of the text's log10 probability, of each word.")
    ] = "1,5,0",
    dev: Annotated[
        int, typer.Option(min=0, help="Tune them on so many utterances first, with references.")
    ] = 0,
    online_weights: Annotated[
        bool, typer.Option("--online-weights", help="Let them learn from each reference.")
    ] = False,
    learn: Annotated[
        bool, typer.Option("--learn", help="Read the winner before the next utterance.")
    ] = False,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Choose from a recognizer's n-best lists, and learn what was chosen; a line an utterance."""
    from unbounded.integrations.kenlm_scorer import opened_scorer
    from unbounded.integrations.nbest import (
        OnlineWeights,
        Rescorer,
        Weights,
        errors_of,
        kaldi_table,
        tuned,
    )
    from unbounded.presets import set_threads

    set_threads(threads)
    rescorer_weights = Weights.parse(weights)
    told = [] if references is None else references.read_text(encoding="utf-8").splitlines()
    said = kaldi_table(told)
    with opened_scorer(model, write=learn) as scorer:
        rescorer = Rescorer(scorer, rescorer_weights, learn=learn)
        adaptive = OnlineWeights(rescorer_weights)
        held: list[Any] = []
        chosen: list[dict[str, Any]] = []
        words = utterances = 0
        wrong = {"before": 0, "after": 0, "oracle": 0}
        for utterance in _utterances(nbest, costs):
            best, features = rescorer.choose(utterance)
            utterances += 1
            fields, line = _winner(utterance, best, features[best, 1])
            if json_file == "-":
                chosen.append(fields)
            else:
                typer.echo(line)
            reference = said.get(utterance.name, utterance.reference)
            if reference is None:
                if dev or online_weights:
                    raise SettingError(
                        f"utterance {utterance.name!r} has no reference, and weights are learned "
                        "from them; give --references, or leave --dev and --online-weights out"
                    )
                continue
            errors = errors_of(utterance, reference)
            if len(held) < dev:
                held.append((features, errors))
                if len(held) == dev:
                    rescorer.weights = tuned(*zip(*held, strict=True))
                    adaptive = OnlineWeights(rescorer.weights)
                    say(f"weights after {dev} utterances: {rescorer.weights}")
                continue
            words += len(reference.split())
            wrong["before"] += int(errors[features[:, 0].argmax()])
            wrong["after"] += int(errors[best])
            wrong["oracle"] += int(errors.min())
            if online_weights:
                adaptive.learn(features, errors)
                rescorer.weights = adaptive.weights
    if len(held) < dev:
        say(f"weights were not tuned: --dev {dev} needs {dev} utterances, there are {len(held)}")
    rates = {name: count / words for name, count in wrong.items()} if words else {}
    if rates:
        say("WER " + ", ".join(f"{name} {rate:.2%}" for name, rate in rates.items()))
    if json_file is not None:
        used = asdict(rescorer.weights)
        found = {"utterances": utterances, "words": words, "wer": rates, "weights": used}
        write_json(found | ({"chosen": chosen} if json_file == "-" else {}), json_file)


def _utterances(nbest: str, costs: Path | None) -> "Iterator[Utterance]":
    from unbounded.integrations.nbest import json_lines, kaldi_costs, kaldi_text

    with ExitStack() as stack:
        file = sys.stdin
        if nbest != "-":
            file = stack.enter_context(open(nbest, encoding="utf-8", errors="replace"))
        first = file.readline()
        if not first.strip():
            raise CorpusError(f"{nbest} has no first line; JSON lines or UTT-N word … are needed")
        lines = chain([first], file)
        if first.lstrip().startswith("{"):
            yield from json_lines(lines, say)
        else:
            table = {}
            if costs is not None:
                table = kaldi_costs(costs.read_text(encoding="utf-8").splitlines(), say)
            yield from kaldi_text(lines, table, say)


def _winner(utterance: "Utterance", best: int, log10: float) -> tuple[dict[str, Any], str]:
    """The winner, with all the fields that it had, and as a line in the form that it came in."""
    winner = utterance.hypotheses[best]
    fields = {**winner.fields, "place": best, "language": round(float(log10), 4)}
    if "key" in winner.fields:
        line = f"{utterance.name} {winner.text}".rstrip()
        return {"utt": utterance.name, "text": winner.text, **fields}, line
    return fields, json.dumps(fields, ensure_ascii=False)
