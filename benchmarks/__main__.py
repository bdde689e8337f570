"""`python -m benchmarks`: speed, always beside an alternative measured in the same run."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import CORES, PLAIN, JsonFile, Seed, Threads, run, size
from unbounded.console import meter, parse_size, say, training_meter, write_json

if TYPE_CHECKING:
    from unbounded.corpus import Line
    from unbounded.lm import Pretrained

bench = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Measure speed beside alternatives, in one run.",
    **PLAIN,
)

PIPED_BEYOND = 10_000
"""Words of a pipe that are kept beyond the entries, for queries."""

DIR = Path(__file__).parent

Bench = Callable[..., Any]
Table = Callable[[int, Mapping[str, Any]], str]

Marks = Annotated[
    str, typer.Option(metavar="SIZES", help="Sizes of the memory to measure at, as 1M,10M.")
]
TextFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="TEXT",
        help="Text to read: a file, a folder, or -; may be repeated [default: built-in texts].",
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="DIR",
        help="Folder made by 'unbounded train' [default: the demo's, in demo/model].",
    ),
]


Figures = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Written by --json.")
]
ModelFolder = Annotated[Path, typer.Option("--model", metavar="DIR", help="Folder of a model.")]


def _finish(figures: Mapping[str, Any], json_file: str | None, table: str) -> None:
    """Write the figures, and show them."""
    if json_file is not None:
        write_json(figures, json_file)
    if json_file != "-":
        typer.echo(table)


@bench.command()
def train(
    vocabulary: int = size("100k", "Words the network knows."),
    steps: int = size("30", "Training steps to time."),
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Training beside the naive way, and one-stream inference beside plain PyTorch."""
    from benchmarks.report import train_table
    from benchmarks.training import bench_inference, bench_training

    training = bench_training(vocabulary, steps, seed)
    inference = bench_inference(vocabulary, 2_000, seed)
    figures = {"training": training, "inference": inference}
    _finish(figures, json_file, train_table(vocabulary, figures))


@bench.command()
def tokenizer(
    texts: TextFiles = None,
    lines: int = size("20k", "Lines of each text."),
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, of which the median counts.")] = 3,
    json_file: JsonFile = None,
) -> None:
    """Our tokenizer beside sacremoses, on the same lines."""
    from benchmarks.report import tokenizer_table
    from benchmarks.training import bench_tokenizer
    from unbounded.corpus import Reader
    from unbounded.demo import demo_text

    given: dict[str, Iterable[Line]] = {name: Reader([name]) for name in texts or ()}
    given = given or {name: demo_text(name) for name in ("sotu", "chat")}
    figures = {name: bench_tokenizer(each, lines, rounds) for name, each in given.items()}
    _finish(figures, json_file, tokenizer_table(figures))


@bench.command()
def read(
    entries: Marks = "100k,1M",
    text: TextFiles = None,
    model_folder: Model = None,
    block: int = size("8192", "Words read at once."),
    faiss: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Indexes of faiss to try beside the paper's, or none [default: PQ128x4fs,"
            "PCA128-PQ64x4fs,RaBitQfs,RaBitQfs4, an hour at 10M].",
        ),
    ] = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """What reading costs a word, beside the network alone and faiss at its strongest.

    Everything in one run, on real states of real text, none of it read twice. The states are
    kept in a temporary file meanwhile: two bytes a unit and word. Figures are written as they come.
    """
    from benchmarks.read import bench_read
    from benchmarks.report import read_table

    rivals = None if faiss is None else [n for n in faiss.split(",") if n != "none"]
    run = partial(bench_read, block=block, threads=threads, rivals=rivals)
    _run(run, read_table, entries, text, model_folder, threads, json_file)


@bench.command()
def search(
    entries: Marks = "100k",
    text: TextFiles = None,
    model_folder: Model = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Queries a second, recall and bytes of each index, beside stock faiss.

    On real states, 1,024 neighbors a query; the queries are the 2,048 states after the entries.
    """
    from benchmarks.report import search_table
    from benchmarks.search import bench_search

    _run(bench_search, search_table, entries, text, model_folder, threads, json_file)


@bench.command()
def restart(
    model: ModelFolder,
    texts: TextFiles = None,
    entries: int = size("100k", "Words to read."),
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the memory goes [default: temporary].")
    ] = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Durable reading beside the same without a store, then kill -9, and a restart."""
    import tempfile

    from benchmarks.report import restart_table
    from benchmarks.restart import bench_restart
    from benchmarks.states import DEMO
    from unbounded.corpus import Reader

    text = Reader(texts) if texts else DEMO
    with tempfile.TemporaryDirectory(prefix="unbounded-bench-", dir=folder) as place:
        figures = bench_restart(model, text, Path(place) / "memory", entries, threads)
    _finish(figures, json_file, restart_table(figures))
    if figures["lost"] or not figures["equal"]:
        raise typer.Exit(1)


@bench.command()
def serve(
    model: ModelFolder,
    users: Annotated[int, typer.Option(min=1, help="Users at once.")] = 32,
    memories: Annotated[int, typer.Option(min=1, help="Memories that they share.")] = 16,
    seconds: Annotated[float, typer.Option(min=2, help="How long the service is used.")] = 120.0,
    direct: Annotated[
        float, typer.Option(min=1, help="How long the library is, each time.")
    ] = 15.0,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """The service under load, killed half-way, beside the library called directly."""
    from benchmarks.report import serve_table
    from benchmarks.serve import bench_serve
    from experiments.results import circumstances

    figures = circumstances(DIR) | bench_serve(
        model,
        users=users,
        memories=memories,
        seconds=seconds,
        threads=threads,
        direct=direct,
        say=say,
    )
    _finish(figures, json_file, serve_table(figures))
    if figures["lost"] or figures["strange"]:
        raise typer.Exit(1)


def _run(
    run: Bench,
    table: Table,
    entries: str,
    texts: list[str] | None,
    folder: Path | None,
    threads: int,
    json_file: str | None,
) -> None:
    """Run a benchmark; its figures are written and shown at each mark, for a run may be stopped."""
    from experiments.results import circumstances
    from unbounded.presets import set_threads

    marks = [parse_size(part) for part in entries.split(",")]
    set_threads(threads)
    figures: dict[str, Any] = {
        **circumstances(DIR),
        "threads": threads,
        "text": ", ".join(texts) if texts else "built-in texts",
        "model": str(folder) if folder else "demo",
        "entries": {},
    }

    def keep(mark: int, there: Mapping[str, Any], *, done: bool) -> None:
        figures["entries"][str(mark)] = there
        if json_file not in (None, "-"):
            write_json(figures, str(json_file))
        if done and json_file != "-":
            typer.echo(f"\n{table(mark, there)}")

    with ExitStack() as stack:
        model = _model(folder)
        lines = stack.enter_context(_text(texts, model, max(marks)))

        def progress(total: int) -> Callable[[int, str], None]:
            return stack.enter_context(meter("reading", total))

        run(model, lines, marks, progress=progress, keep=keep)
    if json_file == "-":
        write_json(figures, json_file)


def _model(folder: Path | None) -> "Pretrained":
    from unbounded.demo import TRAIN, demo_model
    from unbounded.lm import load_model

    if folder is not None:
        return load_model(folder)
    with training_meter(f"training the demo's small network on {TRAIN.title}") as show:
        Path("demo").mkdir(exist_ok=True)
        return demo_model(Path("demo") / "model", 1, show)


@contextmanager
def _text(texts: list[str] | None, model: "Pretrained", tokens: int) -> "Iterator[Iterable[Line]]":
    from benchmarks.states import DEMO
    from unbounded.evaluation.evaluate import readable_twice

    if not texts:
        yield DEMO
        return
    # A pipe is set down in a file: the queries of a search follow its entries.
    with readable_twice(texts, model.tokenizer, tokens + PIPED_BEYOND) as reader:
        yield reader


@bench.command()
def cluster(
    engine: Annotated[
        str, typer.Option(metavar="ADDRESS", help="ray://HOST:PORT or ray://local.")
    ] = "ray://local",
    entries: int = size("1M", "Entries of the memory."),
    shards: Annotated[str, typer.Option(metavar="NUMBERS", help="Shards to try.")] = "1,2,4",
    blocks: Annotated[str, typer.Option(metavar="SIZES", help="Blocks to try.")] = "64,256,1024",
    words: int = size("4096", "Words to time for each."),
    text: TextFiles = None,
    model: Annotated[str, typer.Option(metavar="DIR", help="Folder of a model.")] = "default",
    threads: Threads = 1,
    json_file: JsonFile = None,
) -> None:
    """A memory on shards beside the same in this process; and what the engine itself costs."""
    from benchmarks.cluster import bench_cluster
    from benchmarks.report import cluster_table
    from experiments.results import circumstances
    from unbounded.corpus import Reader
    from unbounded.demo import demo_text
    from unbounded.lm import load_model
    from unbounded.presets import set_threads

    set_threads(threads)
    figures = bench_cluster(
        engine,
        load_model(model),
        Reader(text) if text else demo_text("sotu"),
        entries,
        [int(number) for number in shards.split(",")],
        [parse_size(number) for number in blocks.split(",")],
        words=words,
        show=lambda row: say(cluster_table(row)),
    )
    about = {"threads": threads, "text": text or "built-in", "model": model}
    _finish({**circumstances(DIR), **about, **figures}, json_file, cluster_table(figures))


@bench.command()
def scale(figures: Figures) -> None:
    """How far shards would go on paper, from the figures of 'cluster' (docs/scale.md)."""
    from benchmarks.scale import Constants, scale_grids
    from experiments.markup import markdown

    found = json.loads(figures.read_text(encoding="utf-8"))
    typer.echo(Constants.fitted(found))
    for grid in scale_grids(found):
        typer.echo(f"\n{markdown(grid)}")


@bench.command()
def plot(
    figures: Figures,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where it goes [default: beside FILE].")
    ] = None,
) -> None:
    """Draw perplexity against µs a query, from the figures of 'read': SVG and PNG."""
    from benchmarks.plot import draw_searches

    found = json.loads(figures.read_text(encoding="utf-8"))
    for path in draw_searches(found, (out or figures.parent) / figures.name):
        say(f"drawn: {path}")


if __name__ == "__main__":
    run(bench, "python -m benchmarks")
