"""The figures for people: tables in the terminal."""

from collections.abc import Mapping
from typing import Any

from unbounded.evaluation.rows import TITLES
from unbounded.evaluation.tables import MISSING, Grid, plain, text

_MEGA = 1_000_000

STOCK = "the paper's IVFPQ"

Rows = Mapping[str, Mapping[str, Any]]


def formatted(title: str, first: str, columns: Mapping[str, str], rows: Rows) -> str:
    """A line a row; each column is the format of what it shows of a row.

    >>> print(formatted("", "index", {"µs": "{us:.1f}"}, {"flat": {"us": 2.34}}))
    index     µs
    flat     2.3
    """
    lines = (
        (name, [cell.format_map(row) for cell in columns.values()]) for name, row in rows.items()
    )
    return text(plain(title, (first, *columns), lines))


def train_table(vocabulary: int, figures: Rows) -> str:
    """Training beside the naive way, one stream beside torch."""
    training, inference = figures["training"], figures["inference"]
    titles = {"states": "hidden states", "probabilities": "probabilities", "adapted": "adapted"}
    keys = {"torch": "torch_{}_1_us", "native": "{}_1_us", "two threads, clock": "{}_2_us"}
    lines = [
        (title, [f"{inference[k]:.1f}" if k in inference else "" for k in asked])
        for name, title in titles.items()
        for asked in [[key.format(name) for key in keys.values()]]
    ]
    lines.append(("to torch", ["1.00", *(f"{inference[f'ratio_{n}']:.2f}" for n in (1, 2))]))
    title = (
        f"vocabulary {vocabulary:,}, one thread, CPU time\n"
        f"training: {training['words_per_cpu_second']:,.0f} words/s; with dense embedding "
        f"gradients and full softmax {training['naive_words_per_cpu_second']:,.0f}, "
        f"{training['ratio']:.1f} times slower"
    )
    return text(plain(title, ("µs a word of one stream", *keys), lines))


def tokenizer_table(figures: Rows) -> str:
    """Our tokenizer beside another."""
    columns = {
        "ours": "{words_per_cpu_second:,.0f}",
        "sacremoses": "{sacremoses_words_per_cpu_second:,.0f}",
        "ratio": "{ratio:.1f}",
        "same lines": "{identical:.3%}",
    }
    return formatted("", "words a CPU second", columns, figures)


def read_table(mark: int, figures: Mapping[str, Any]) -> str:
    """What reading costs at one mark."""
    return "\n\n".join([text(_rows(mark, figures)), _searches(figures), _remarks(figures)])


def _rows(mark: int, figures: Mapping[str, Any]) -> Grid:
    perplexity, paper = figures["perplexity"], figures["paper_ratio"]
    static, torch = figures["static_us"], figures["torch_static_us"]

    def line(title: str, us: float, of: str = "") -> tuple[str, list[str]]:
        said = "{:.1f} to {:.1f}".format(*paper[of]) if of in paper else ""
        nats = f"{perplexity[of]:,.2f}" if of in perplexity else ""
        return title, [f"{us:,.1f}", f"{us / static:.2f}", f"{us / torch:.2f}", said, nats]

    lines = [line(TITLES[n], figures[f"{n}_us"], n) for n in ("static", "local", "unbounded")]
    lines += [
        line(TITLES["full"], figures["full_us"], "full"),
        line("unbounded, whole stream", figures["stream_us"]),
        line("static in plain PyTorch", torch),
        line("plain neural cache", figures["plain_cache_us"]),
    ]
    title = f"{mark:,} entries, measured on the last {figures['stretch']:,} words"
    head = ("", "µs/word", "to static", "to torch_static", "paper", "perplexity")
    return plain(title, head, lines)


def _searches(figures: Mapping[str, Any]) -> str:
    """Ours, stock and the contestants; the contest is on the first words of the stretch."""
    ours = figures["search_us"]
    rows = {
        one["name"]: {
            "us": f"{one['us']:,.1f}",
            "ratio": f"{one['us'] / ours:.1f}",
            "charged": f"{one['charged_us']:,.1f}" if one.get("charged_us") else MISSING,
            "perplexity": f"{one['perplexity']:,.2f}" if one.get("perplexity") else MISSING,
        }
        for one in searches(figures)
    }
    columns = {"µs/query": "{us}", "to ours": "{ratio}", "charged": "{charged}"}
    return formatted("", "search", columns | {"perplexity": "{perplexity}"}, rows)


def searches(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every search at a mark: its name, µs, what is charged, and perplexity on the same words."""
    ours = {
        "name": f"ours, {figures['k']:,} neighbors",
        "us": figures["search_us"],
        "charged_us": figures.get("charged_us", figures["experts_us"].get("unbounded")),
        "perplexity": figures["contest_perplexity"],
    }
    stock = {
        "name": STOCK,
        "us": figures["stock_search_us"],
        "charged_us": figures.get("stock_charged_us"),
    }
    return [ours, stock, *figures["contest"]]


def _remarks(figures: Mapping[str, Any]) -> str:
    perplexity, predict = figures["perplexity"], figures["predict_us"]
    best = "none was tried"
    if "best_faiss" in figures:
        us, ours = figures["best_faiss_us"], figures["search_us"]
        best = f"{figures['best_faiss']}, {us:,.1f} µs, {us / ours:.1f} times our time"
    return "\n".join(
        [
            "charged with training, growth and visibility: a query, and what an entry took until "
            "the next block could find it",
            f"best of faiss: {best}; stock {figures['search_ratio']:.1f} times",
            "perplexity with nothing of the stretch in the memory, weights fitted: "
            f"{perplexity['unbounded_frozen']:,.2f}, with as many neighbors as stock "
            f"{perplexity['as_many_frozen']:,.2f}, stock faiss {perplexity['stock']:,.2f}, "
            f"kNN-LM {perplexity['knn_lm']:,.2f}",
            f"one prediction: median {predict['median']:,.0f} µs, 99th percentile "
            f"{predict['p99']:,.0f} µs; longest stall {figures['longest_stall_s']:.2f} s",
            f"memory: {figures['bytes_per_entry']:,.0f} bytes an entry; peak RSS "
            f"{figures['peak_rss'] / _MEGA:,.0f} MB, "
            f"{figures['peak_rss_beyond_model'] / _MEGA:,.0f} MB beyond the model",
        ]
    )


def search_table(mark: int, figures: Rows) -> str:
    """How the indexes compare at one mark."""
    columns = {
        "queries/s": "{queries_per_second:,.0f}",
        "to stock": "{ratio:.2f}",
        "recall": "{recall:.3f}",
        "filled": "{filled:.3f}",
        "bytes": "{bytes_per_entry:,.0f}",
        "adds/s": "{adds_per_second:,.0f}",
    }
    return formatted(f"{mark:,} entries", "", columns, figures)


def serve_table(figures: Mapping[str, Any]) -> str:
    """What the service does beside the library."""
    library = figures["library_latency_ms"]
    times = {
        verb: {**took, "library": library[verb]["p50"]}
        for verb, took in figures["latency_ms"].items()
    }
    columns = {name: f"{{{name}:,.0f}}" for name in ("count", "p50", "p90", "p99", "max")}
    title = (
        f"{figures['users']} users, {figures['memories']} memories, {figures['threads']} threads, "
        f"{figures['seconds']:.0f} s, killed half-way\n"
        f"{figures['words_per_second']:,.0f} words/s, {figures['ratio']:.2f} of the library's "
        f"{figures['library_words_per_second']['taken']:,.0f}"
    )
    table = formatted(title, "ms", columns | {"library p50": "{library:,.0f}"}, times)
    return (
        f"{table}\n{figures['acknowledged']:,} reads acknowledged, {figures['lost']} lost; "
        f"{figures['strange']} words of others seen; {figures['interrupted']} calls cut off, "
        f"{figures['refused']} told to come again; ready {figures['restart_seconds']:.1f} s after "
        f"kill -9, stopped in {figures['stop_seconds']:.1f} s"
    )


def restart_table(figures: Mapping[str, Any]) -> str:
    """What durability costs, and a restart."""
    read, again = figures["read"], figures["restart"]
    said = "equal to the bit" if figures["equal"] else "DIFFERENT"
    return (
        f"{read['words']:,} words: {read['durable_us']:.1f} µs a word durable, "
        f"{read['plain_us']:.1f} without a store, ratio {read['ratio']:.3f}; longest block "
        f"{read['longest_block_s']:.2f} s, {read['bytes_per_word']:.0f} bytes a word\n"
        f"after kill -9: {again['seconds']:.1f} s until the first prediction, of them "
        f"{again['open_s']:.2f} opening, {again['read_again']:,} words read again; "
        f"{figures['lost']} lost, what it says {said}"
    )


def cluster_table(figures: Mapping[str, Any]) -> str:
    """Words a second by number of shards and block."""
    rows = {
        f"{row['name']}, blocks of {int(block):,}": {
            "rate": rate,
            "full": row["full_words_per_second"][block],
            "empty": row["empty_queries_per_second"][block],
            "added": row["added_per_second"],
        }
        for row in figures["rows"]
        for block, rate in row["words_per_second"].items()
    }
    columns = {"words/s": "{rate:,.0f}", "full, words/s": "{full:,.0f}"}
    columns |= {"queries/s, empty": "{empty:,.0f}"}
    title = f"{figures['entries']:,} entries"
    return formatted(title, "", columns | {"added/s": "{added:,.0f}"}, rows)
